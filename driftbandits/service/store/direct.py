"""Transactions without what SQLAlchemy does for each statement: the log is written all the time.

With SQLite, that takes longer than writing the events of some callers. Errors are SQLAlchemy's all
the same.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

LARGEST_INSERT, LARGEST_REST = 256, 64  # rows of one statement
PREPARED_STATEMENTS = 256  # that a connection to SQLite keeps: one for each number of rows

Row = tuple[Any, ...]
# Runs a statement with the values of one row, or of each in a list; gives how many rows it changed.
Execute = Callable[[str, Row | list[Row]], int]


class DirectTransactions:
    """Transactions of one database, for any thread; with SQLite one at a time."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._lock = threading.Lock()
        self._kept: Any = None  # the connection to SQLite

    def begin(self) -> AbstractContextManager[Execute]:
        return self._with_sqlite() if self._is_sqlite else self._with_sqlalchemy()

    @contextmanager
    def _with_sqlalchemy(self) -> Iterator[Execute]:
        with self._engine.begin() as connection:
            yield lambda statement, rows: connection.exec_driver_sql(statement, rows).rowcount

    @contextmanager
    def _with_sqlite(self) -> Iterator[Execute]:
        def execute(statement: str, rows: Row | list[Row]) -> int:
            if isinstance(rows, list):
                insert_rows(cursor, statement, rows)
                return len(rows)
            return cursor.execute(statement, rows).rowcount

        with self._lock:
            try:
                self._kept = connection = self._kept or self._engine.raw_connection()
                cursor = connection.cursor()
                cursor.execute("BEGIN IMMEDIATE")
                yield execute
                connection.commit()
            except BaseException as error:
                self._close()
                if isinstance(error, sqlite3.Error):
                    raise DBAPIError.instance(None, None, error, sqlite3.Error) from error
                raise

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        """Returns the connection to the pool, which rolls back what was not committed."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()


def insert_rows(cursor: Any, statement: str, rows: list[Row]) -> None:
    """Inserts many rows per statement, as the driver gives up the GIL for each statement."""
    first = 0
    while first < len(rows):
        left = len(rows) - first
        size = LARGEST_INSERT if left >= LARGEST_INSERT else min(left, LARGEST_REST)
        cursor.execute(inserting_many(statement, size), flattened(rows[first : first + size]))
        first += size


@lru_cache(PREPARED_STATEMENTS)
def inserting_many(statement: str, rows: int) -> str:
    """Turns an INSERT of one row into one of many."""
    head, keyword, row = statement.rpartition("VALUES ")
    return f"{head}{keyword}{', '.join([row] * rows)}"


def flattened(rows: list[Row]) -> list[Any]:
    """The values of all rows, with bytearray in place of bytes.

    The driver binds a bytearray as it is, but looks for an adapter each time that it binds bytes.
    """
    values, width = list(chain.from_iterable(rows)), len(rows[0])
    for place, value in enumerate(rows[0]):
        if type(value) is bytes:
            column = values[place::width]
            if None not in column:
                values[place::width] = map(bytearray, column)
    return values
