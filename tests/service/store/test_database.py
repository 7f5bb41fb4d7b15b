"""Opening databases: which ones, by whom, and what happens when they are away or locked."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from driftbandits import InputError
from driftbandits.service.store.database import use_wal
from driftbandits.service.store.records import Entry
from driftbandits.service.store.schema import SCHEMA_VERSION, versions
from driftbandits.service.store.store import Store
from tests.service.store import databases
from tests.service.store.databases import ask, decision, decisions, new, new_database

postgres, database, store = databases.postgres, databases.database, databases.store


def test_many_may_open_a_new_database_at_once(database: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        stores = list(threads.map(lambda _: Store(database), range(6)))
    lease = new(stores[0])
    for seq, writer in enumerate(stores):
        assert writer.append([Entry(lease, seq, [decision(seq + 1)])]) == set()
        writer.close()
    again = Store(database)
    assert again.events(lease.bandit, 0) == decisions(1, 6)
    again.close()


class Busy:
    """A connection to a file that others have locked for a while."""

    def __init__(self, *errors: str) -> None:
        self.errors, self.asked = list(errors), 0

    def execute(self, statement: str) -> None:
        assert statement == "PRAGMA journal_mode = WAL"
        self.asked += 1
        if self.errors:
            raise sqlite3.OperationalError(self.errors.pop(0))


def test_a_file_that_is_locked_while_it_is_opened_is_waited_for() -> None:
    busy = Busy("database is locked", "database is locked")
    use_wal(busy)
    assert busy.asked == 3
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        use_wal(Busy("disk I/O error"))


def test_a_newer_schema_is_refused(database: str, store: Store) -> None:
    new(store)
    with store._writing() as connection:
        connection.execute(versions.update().values(version=SCHEMA_VERSION + 1))
    with pytest.raises(InputError, match=f"schema version must be .*, got {SCHEMA_VERSION + 1}"):
        Store(database)
    assert store.bandits(), "nothing was harmed"


UNKNOWN = ["", "bandits.db", "mysql://me:secret@host/db", "postgresql+asyncpg://me:secret@host/db"]
BROKEN = ["postgresql://me:secret@host:port/db", "sqlite:////no/such/folder/bandits.db"]
FORGETFUL = ["sqlite://", "sqlite:///:memory:", "sqlite:////tmp"]


@pytest.mark.parametrize("url", UNKNOWN + BROKEN + FORGETFUL)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InputError, match=r"database must be .*, got") as caught:
        Store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_server_may_go_away_and_come_back(postgres: Any, scheme: str) -> None:
    store = Store(new_database(postgres).replace("postgresql", scheme, 1))
    lease = new(store)
    postgres.stop()
    for _ in range(2):
        with pytest.raises(OperationalError):
            store.append([Entry(lease, 0, decisions(1, 2))])
    postgres.ensure_postgres_running()
    assert store.append([Entry(lease, 0, decisions(1, 2))]) == set()
    ask(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ~ 'test_'")
    assert store.events(lease.bandit, 0) == decisions(1, 2)
    store.close()


def test_limits_of_connections_may_be_in_the_url(postgres: Any) -> None:
    url = new_database(postgres)
    assert "host=" in url
    for store, expected in (
        (Store(url), {"tcp_user_timeout": "1000", "connect_timeout": "2"}),
        (Store(f"{url}&tcp_user_timeout=9000"), {"tcp_user_timeout": "9000"}),
    ):
        with store._reading() as connection:
            info = connection.connection.dbapi_connection.info  # type: ignore[union-attr]
            assert info.get_parameters().items() >= expected.items()
        store.close()


def test_a_locked_file_is_an_error_of_the_database(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/bandits.db?timeout=0.01")
    lease = new(store)
    other = sqlite3.connect(tmp_path / "bandits.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="locked"):
        store.append([Entry(lease, 0, decisions(1, 2))])
    assert store.events(lease.bandit, 0) == [], "reading goes on"
    other.execute("ROLLBACK")
    assert store.append([Entry(lease, 0, decisions(1, 2))]) == set()
    for pragma, value in {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}.items():
        with store._reading() as connection:
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
    other.close()
    store.close()


def test_sqlite_is_left_as_it_was_for_the_rest_of_the_process(tmp_path: Path) -> None:
    code = f"""
import sqlite3
before = dict(sqlite3.adapters), dict(sqlite3.converters)
from tests.service.store.databases import decisions, new
from driftbandits.service.store.database import use_wal
from driftbandits.service.store.records import Entry
from driftbandits.service.store.store import Store
store = Store("sqlite:///{tmp_path}/bandits.db")
store.append([Entry(new(store), 0, decisions(1, 300))])
assert before == (sqlite3.adapters, sqlite3.converters)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3])
    assert done.returncode == 0
