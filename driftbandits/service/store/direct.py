"""Transactions without what SQLAlchemy does for each statement: the log is written all the time.

With SQLite, that takes longer than writing the events of some callers. Errors are SQLAlchemy's all
the same.
"""

import sqlite3
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


def direct_transaction(engine: sa.Engine) -> AbstractContextManager[Execute]:
    is_sqlite = engine.dialect.name == "sqlite"
    return sqlite_transaction(engine) if is_sqlite else usual_transaction(engine)


@contextmanager
def usual_transaction(engine: sa.Engine) -> Iterator[Execute]:
    with engine.begin() as connection:
        yield lambda statement, rows: connection.exec_driver_sql(statement, rows).rowcount


@contextmanager
def sqlite_transaction(engine: sa.Engine) -> Iterator[Execute]:
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()

        def execute(statement: str, rows: Row | list[Row]) -> int:
            if isinstance(rows, list):
                insert_rows(cursor, statement, rows)
            else:
                cursor.execute(statement, rows)
            return cursor.rowcount

        cursor.execute("BEGIN IMMEDIATE")
        yield execute
        connection.commit()
    except sqlite3.Error as error:
        raise DBAPIError.instance(None, None, error, sqlite3.Error) from error
    finally:
        connection.close()  # to the pool, which takes back what was not committed


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
    """An INSERT of one row as one of many."""
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
