"""Commits groups of answers: their events go to the log in one transaction, then they are sent.

While one group is being written, the next one may be computed; it is written when the first one is.
Whatever becomes of the first, the second cannot get ahead of it: every event has a number, and the
log takes none that does not follow the last.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.engine.commands import Reply
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.errors import ApiError
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Entry
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")


class Served(NamedTuple):
    """Replies of a bandit, and what must be in its log before they are sent."""

    live: LiveBandit
    replies: list[Reply]
    entry: Entry


class Written(NamedTuple):
    """A group whose transaction has ended."""

    group: list[Served]
    lost: set[int]  # ids of bandits whose events are not in the log, or not known to be


class Committer:
    def __init__(
        self, store: Store, metrics: Metrics, send_replies: Callable[[list[Reply]], None]
    ) -> None:
        self._store, self._metrics, self._send_replies = store, metrics, send_replies
        self._thread = ThreadPoolExecutor(1, "driftbandits-committer")
        self._writing: Future[Written] | None = None

    def write(self, group: list[Served], in_background: bool) -> None:
        """Starts writing a group; the one before must be finished."""
        assert self._writing is None
        if in_background:
            self._writing = self._thread.submit(self._write, group)
        else:
            written = self._write(group)
            self._writing = Future()
            self._writing.set_result(written)

    def is_done(self) -> bool:
        """Whether there is a group that `finish` need not wait for."""
        return self._writing is not None and self._writing.done()

    def finish(self) -> Written:
        """Waits for the group that is being written and returns it."""
        writing, self._writing = self._writing, None
        return writing.result() if writing else Written([], set())

    def stop(self) -> None:
        self._thread.shutdown()

    def _write(self, group: list[Served]) -> Written:
        """Writes a group; the replies of bandits that could not be written become errors."""
        entries = [served.entry for served in group if served.entry.events]
        failure, lost = errors.moving(), set[int]()
        if entries:
            try:
                with self._metrics.commit_seconds.time():
                    lost = self._store.append(entries)
                for entry in entries:
                    if entry.lease.bandit not in lost:
                        self._metrics.count(entry.events)
            except Exception as error:
                failure, lost = failed(error), {entry.lease.bandit for entry in entries}
        replies: list[Reply] = []
        for served in group:
            is_lost = served.entry.lease.bandit in lost
            replies += refuse_all(served.replies, failure) if is_lost else served.replies
        self._send_replies(replies)
        return Written(group, lost)


def refuse_all(replies: list[Reply], refusal: ApiError) -> list[Reply]:
    return [Reply(reply.call, refusal) for reply in replies]


def failed(error: Exception) -> ApiError:
    if isinstance(error, SQLAlchemyError) and not isinstance(error, IntegrityError):
        log.warning("not committed: %s", first_line(error))
        return errors.no_database()
    log.error("not committed", exc_info=error)
    return errors.not_committed()
