"""Groups of answers on their way out: first their events go to the log, in one transaction.

While one group is being written, the next one may be thought about; it is written when the first
one is. Whatever becomes of the first, the second cannot get ahead of it: every event has a number,
and the log takes none that does not follow the last.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from driftbandits.service import refusals
from driftbandits.service.gauges import Gauges
from driftbandits.service.live import LiveBandit
from driftbandits.service.records import Event, Lease
from driftbandits.service.refusals import Refusal, first_line
from driftbandits.service.store import Store
from driftbandits.service.wishes import Reply

log = logging.getLogger("driftbandits.service")


class Served(NamedTuple):
    """What a bandit has to say, and what must be in its log before it is said."""

    live: LiveBandit
    replies: list[Reply]
    lease: Lease
    last: int  # the number of its last event before these
    events: list[Event]


class Written(NamedTuple):
    """A group that is through."""

    group: list[Served]
    lost: set[int]  # ids of bandits whose events are not in the log, or not known to be


class Committer:
    def __init__(
        self, store: Store, gauges: Gauges, hand_out: Callable[[list[Reply]], None]
    ) -> None:
        self._store, self._gauges, self._hand_out = store, gauges, hand_out
        self._thread = ThreadPoolExecutor(1, "driftbandits-committer")
        self._writing: Future[Written] | None = None

    def write(self, group: list[Served], aside: bool) -> None:
        """The one before must have been finished; `aside` is on another thread."""
        assert self._writing is None
        if aside:
            self._writing = self._thread.submit(self._write, group)
        else:
            written = self._write(group)
            self._writing = Future()
            self._writing.set_result(written)

    def is_done(self) -> bool:
        """Whether there is a group that `finish` need not wait for."""
        return self._writing is not None and self._writing.done()

    def finish(self) -> Written:
        """The group that was being written, now that it is."""
        writing, self._writing = self._writing, None
        return writing.result() if writing else Written([], set())

    def stop(self) -> None:
        self._thread.shutdown()

    def _write(self, group: list[Served]) -> Written:
        """The answers of those that could not be written change."""
        entries = [(each.lease, each.last, each.events) for each in group if each.events]
        failure, lost = refusals.moving(), set[int]()
        if entries:
            try:
                with self._gauges.commit_seconds.time():
                    lost = self._store.append(entries)
                for lease, _, events in entries:
                    if lease.bandit not in lost:
                        self._gauges.count(events)
            except Exception as error:
                failure, lost = failed(error), {lease.bandit for lease, _, _ in entries}
        self._hand_out(
            [
                (call, failure if lease.bandit in lost else reply)
                for _, replies, lease, _, _ in group
                for call, reply in replies
            ]
        )
        return Written(group, lost)


def failed(error: Exception) -> Refusal:
    if isinstance(error, SQLAlchemyError) and not isinstance(error, IntegrityError):
        log.warning("not committed: %s", first_line(error))
        return refusals.no_database()
    log.error("not committed", exc_info=error)
    return refusals.not_committed()
