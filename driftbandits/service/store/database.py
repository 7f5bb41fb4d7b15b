"""Connections to SQLite or PostgreSQL, set up for a log that must not lose anything."""

import os
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError

from driftbandits.check import fail
from driftbandits.service.store.direct import PREPARED_STATEMENTS
from driftbandits.service.store.outage import Outage

DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
PRAGMAS = [
    "synchronous = FULL",
    "foreign_keys = ON",
    "cache_size = -8192",  # KiB of each connection; the system has the file in its own cache
    "wal_autocheckpoint = 8000",  # pages
]
# A commit is on the disk when it returns. A worker that froze lets go of its rows before its lease
# expires. A server that is silent is given up while its callers still wait, within two seconds.
POSTGRESQL_OPTIONS = {
    "options": "-c synchronous_commit=on -c lock_timeout=5s -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=2s",
    "connect_timeout": 2,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 1000,  # milliseconds
}
POOL_SECONDS = 2.0  # until whoever finds all connections in use is refused
FILE_SECONDS = 10  # for a locked file
VALID_URL = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"


def parse_url(url: str) -> sa.URL:
    """The URL with the driver that the store uses."""
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        fail("database", VALID_URL, redacted(url))
    if parsed.drivername not in DRIVERS:
        fail("database", VALID_URL, redacted(url))
    if parsed.drivername.startswith("sqlite"):
        file = parsed.database or ""
        if file in ("", ":memory:") or file.startswith("file:"):
            fail("database", "sqlite:///FILE, as a log in memory would be lost", redacted(url))
        if not Path(file).parent.is_dir() or Path(file).is_dir():
            fail("database", "a file in a folder that exists", redacted(url))
    return parsed.set(drivername=DRIVERS[parsed.drivername])


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite database; None for PostgreSQL."""
    parsed = parse_url(url)
    return Path(parsed.database or "") if parsed.drivername.startswith("sqlite") else None


def redacted(url: str) -> str:
    """The URL without its password."""
    return re.sub(r":[^:@/]*@", ":***@", url)


def connect(url: str, read_only: bool = False) -> sa.Engine:
    """Connects; with `read_only`, an SQLite file is not written to."""
    parsed = parse_url(url)
    is_sqlite = parsed.drivername.startswith("sqlite")
    return sqlite_engine(parsed, read_only) if is_sqlite else postgresql_engine(parsed)


def sqlite_engine(url: sa.URL, read_only: bool) -> sa.Engine:
    options: dict[str, Any] = {
        "timeout": FILE_SECONDS,
        "cached_statements": PREPARED_STATEMENTS,
        **url.query,
    }
    options["timeout"] = float(options["timeout"])
    place = read_only_url(url) if read_only else url.set(query={})
    engine = sa.create_engine(place, connect_args=options)
    event.listen(engine, "connect", begin_nothing)
    if not read_only:
        event.listen(engine, "connect", set_pragmas)
    event.listen(engine, "begin", begin_sqlite)
    return engine


def postgresql_engine(url: sa.URL) -> sa.Engine:
    options = {key: value for key, value in POSTGRESQL_OPTIONS.items() if key not in url.query}
    engine = sa.create_engine(
        url,
        pool_pre_ping=True,  # as the server may have restarted
        pool_timeout=POOL_SECONDS,
        paramstyle="format",  # rows are tuples
        isolation_level="READ COMMITTED",  # fencing rereads a row after waiting for its lock
        connect_args=options,
    )
    event.listen(engine, "do_executemany", copy_rows)
    Outage().watch(engine)
    return engine


def without_transactions(engine: sa.Engine) -> sa.Engine:
    """For reading: PostgreSQL would end an idle transaction of a slow reader.

    Statements see one state each either way (READ COMMITTED). SQLite needs its transactions.
    """
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def read_only_url(url: sa.URL) -> sa.URL:
    """The URL to read a file that a service may be writing, or that is read-only.

    To read a log in WAL mode, SQLite makes files beside it. Where it may not, and there are none,
    no service is at work, and SQLite has to be told that nobody writes.
    """
    path = Path(url.database or "").absolute()
    query = {"uri": "true", "mode": "ro"}
    if not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        query["immutable"] = "1"
    return url.set(database=path.as_uri(), query=query)


def begin_nothing(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # the driver begins no transactions by itself


def set_pragmas(connection: Any, record: Any) -> None:
    use_wal(connection)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def use_wal(connection: Any) -> None:
    """Sets WAL mode; retries while others open the same file, as SQLite does not wait here."""
    end = time.monotonic() + FILE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


def begin_sqlite(connection: sa.Connection) -> None:
    """Begins a transaction; writers lock before reading, or a later write would fail."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def copy_rows(cursor: Any, statement: str, rows: list[tuple[Any, ...]], context: Any) -> bool:
    """Runs COPY through SQLAlchemy, so that its errors are SQLAlchemy's too."""
    if not statement.startswith("COPY "):
        return False
    with cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
    return True
