"""The way to the database: its URL, its connections and its transactions."""

import re
import sqlite3
from itertools import chain
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError

from driftbandits.check import fail

DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
PRAGMAS = [
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "cache_size = -65536",  # KiB
    "wal_autocheckpoint = 8000",  # pages
]
# A commit is on the disk. What a worker that stopped left behind does not block another for long.
SERVER = {
    "options": "-c synchronous_commit=on -c lock_timeout=5s -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=3s",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
PATIENCE = 10  # seconds, for a locked file or a server that does not answer
# The driver asks each time, at length, how to adapt these, unless it is told that they stay as is.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(type(None), dict[None, None]().get)
AT_ONCE = (256, 64, 16, 4, 1)  # rows of one INSERT in SQLite


def parse(url: str) -> sa.URL:
    """The URL with the driver that the store uses."""
    shown = re.sub(r":[^:@/]*@", ":***@", url)
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        fail("url", "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE", shown)
    if parsed.drivername not in DRIVERS:
        fail("url", "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE", shown)
    if parsed.drivername.startswith("sqlite"):
        file = parsed.database or ""
        if file in ("", ":memory:") or file.startswith("file:"):
            fail("url", "sqlite:///FILE, as a log in memory would be lost", shown)
        if not Path(file).parent.is_dir() or Path(file).is_dir():
            fail("url", "a file in a folder that exists", shown)
    return parsed.set(drivername=DRIVERS[parsed.drivername])


def connect(url: str) -> sa.Engine:
    """A pool of connections; those to a server are tried first, as it may have been away."""
    parsed = parse(url)
    if parsed.drivername.startswith("sqlite"):
        options: dict[str, Any] = {"connect_args": {"timeout": PATIENCE, **parsed.query}}
        options["connect_args"]["timeout"] = float(options["connect_args"]["timeout"])
        engine = sa.create_engine(parsed.set(query={}), **options)
        event.listen(engine, "connect", set_up_sqlite)
        event.listen(engine, "begin", begin_sqlite)
        event.listen(engine, "do_executemany", insert_rows)
        return engine
    told = {"connect_timeout": PATIENCE, **SERVER}
    patience = {key: value for key, value in told.items() if key not in parsed.query}
    engine = sa.create_engine(
        parsed,
        pool_pre_ping=True,
        paramstyle="format",  # rows are tuples
        isolation_level="READ COMMITTED",  # fencing looks at a row again after waiting for it
        connect_args=patience,
    )
    event.listen(engine, "do_executemany", copy_rows)
    return engine


def set_up_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def begin_sqlite(connection: sa.Connection) -> None:
    """A writer queues before it reads, as a reader that turns writer would fail at once."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def insert_rows(cursor: Any, statement: str, rows: list[tuple[Any, ...]], context: Any) -> bool:
    """Many rows in one statement: other threads run while it does, and it asks for none of them.

    The driver lets go of the interpreter for every statement, and queues for it afterwards.
    """
    head, values, one = statement.rpartition("VALUES ")
    first = 0
    for size in AT_ONCE:
        many = f"{head}{values}{', '.join([one] * size)}"
        for _ in range((len(rows) - first) // size):
            cursor.execute(many, list(chain.from_iterable(rows[first : first + size])))
            first += size
    return True


def copy_rows(cursor: Any, statement: str, rows: list[tuple[Any, ...]], context: Any) -> bool:
    """Lets COPY take rows as INSERT does, so that its errors are SQLAlchemy's as well."""
    if not statement.startswith("COPY "):
        return False
    with cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
    return True
