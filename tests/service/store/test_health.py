"""A database that cannot keep what is written is found out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from driftbandits.service.store import health
from driftbandits.service.store.health import Unhealthy
from driftbandits.service.store.store import Store
from tests.service.store.databases import ask, database, new_database, postgres, store

__all__ = ["database", "postgres", "store"]  # fixtures: pytest finds them by name


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bandits.sqlite"


@pytest.fixture
def on_disk(file: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{file}")
    yield store
    store.close()


def test_a_good_one_is_healthy_and_as_it_was(store: Store) -> None:
    store.check_health()
    store.check_health()
    assert store.bandits() == []


def test_a_file_that_was_deleted(on_disk: Store, file: Path) -> None:
    file.unlink()
    with pytest.raises(Unhealthy, match="deleted or replaced"):
        on_disk.check_health()


def test_a_file_that_was_replaced(on_disk: Store, file: Path, tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path / 'other.sqlite'}").close()
    (tmp_path / "other.sqlite").replace(file)
    with pytest.raises(Unhealthy, match="deleted or replaced"):
        on_disk.check_health()


def test_a_full_disk(on_disk: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LEAST_FREE_BYTES", 2**63)
    with pytest.raises(Unhealthy, match="no room"):
        on_disk.check_health()


def test_a_file_that_is_locked(file: Path) -> None:
    store, other = Store(f"sqlite:///{file}?timeout=0.01"), Store(f"sqlite:///{file}")
    with other._writing(), pytest.raises(SQLAlchemyError, match="locked"):
        store.check_health()
    store.check_health()
    store.close()
    other.close()


def test_a_worker_that_froze_while_it_looked_keeps_nobody(postgres) -> None:
    url = new_database(postgres)
    store, frozen = Store(f"{url}&options=-c%20lock_timeout%3D1s"), Store(url)
    with frozen._writing() as connection:
        assert connection.execute(health.WRITE).rowcount == 1
        store.check_health()
    store.close()
    frozen.close()


def test_a_server_that_takes_no_writes(postgres) -> None:
    url = new_database(postgres)
    store = Store(url)
    store.check_health()
    store.close()
    name = sa.make_url(url).database
    ask(postgres, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(SQLAlchemyError, match="read-only"):
        store.check_health()
    store.close()
