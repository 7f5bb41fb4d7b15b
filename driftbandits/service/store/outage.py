"""A database that does not respond keeps one caller waiting at a time, not all.

A connection that gets no answer fails after a second or two. While the last one failed so, others
are refused at once, and one a second tries again. A server that is stopped refuses at once by
itself: there is nothing to spare anybody.
"""

import logging
import threading
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

log = logging.getLogger("driftbandits.service")

PAUSE_SECONDS = 1.0  # between two tries
SLOW_SECONDS = 0.5  # a failure that took longer was silence
SILENCE = "timed out"  # what the system calls a connection without answers


class SilentDatabaseError(OperationalError):
    """The database did not answer a moment ago, so it was not asked again."""

    def __init__(self) -> None:
        super().__init__(None, None, ConnectionError("it did not answer a moment ago"))


class Outage:
    """The outage of one database, shared by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next_try: float | None = None  # None while there is no outage

    def watch(self, engine: sa.Engine) -> None:
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "handle_error", self._note)

    def _connect(self, dialect: Any, _: Any, arguments: Any, options: Any) -> Any:
        if not self._may_try():
            raise SilentDatabaseError
        begin = time.monotonic()
        try:
            connection = dialect.connect(*arguments, **options)
        except dialect.loaded_dbapi.Error:
            if time.monotonic() - begin > SLOW_SECONDS:
                self._begin()
            raise
        if self._next_try is not None:
            log.warning("the database answers again")
            self._next_try = None
        return connection

    def _may_try(self) -> bool:
        with self._lock:
            now = time.monotonic()
            if self._next_try is None:
                return True
            if now < self._next_try:
                return False
            self._next_try = now + PAUSE_SECONDS  # for the others
            return True

    def _note(self, context: sa.ExceptionContext) -> None:
        if context.is_disconnect and SILENCE in str(context.original_exception):
            self._begin()

    def _begin(self) -> None:
        if self._next_try is None:
            log.warning("the database does not answer; it is tried once a second")
        self._next_try = time.monotonic() + PAUSE_SECONDS
