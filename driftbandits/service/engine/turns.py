"""Bandits take turns on the engine's thread, so that none of them keeps the others waiting.

A bandit answers its calls step by step. When its turn is over, it goes on in the next round, and
what is asked of it meanwhile waits behind.
"""

import logging
import time
from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.engine.answering import answer
from driftbandits.service.engine.commands import Call, Delete, Reply, split_at_last
from driftbandits.service.engine.committer import Served
from driftbandits.service.engine.live_bandit import Find, LiveBandit
from driftbandits.service.errors import ApiError

log = logging.getLogger("driftbandits.service")

TURN = 0.02  # seconds that a bandit has in a round, about
SLICE = 0.05  # seconds of a round, about: then the engine looks at what came in


class Work:
    """The calls that a bandit is answering, and those that wait behind them."""

    def __init__(self, live: LiveBandit, calls: list[Call], now: float, find: Find) -> None:
        self.live = live
        self.calls, self.behind = split_at_last(calls)
        self._steps = answer(live, self.calls, now, find)
        self.replies: list[Reply] = []  # that may be sent when the events are committed
        self.complete = 0  # events that may be committed
        self.has_begun = self.is_done = self.has_failed = False

    def advance(self) -> None:
        """Takes one turn; if it fails, its calls get the error."""
        try:
            self._advance()
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            self.fail(errors.no_database())
        except Exception:
            log.exception("bandit %r failed", self.live.row.name)
            self.fail(errors.broken_policy(self.live.row.name))

    def _advance(self) -> None:
        self.has_begun = True
        if not self.calls and self.is_to_be_deleted:  # whatever has expired
            self.end([])
            return
        end = time.perf_counter() + TURN
        for replies in self._steps:
            if replies is not None:
                self.replies += replies
                self.complete = len(self.live.events)
            if time.perf_counter() > end:
                return
        self.is_done = True

    def to_be_committed(self) -> Served:
        """Returns what to commit, without answers based on something that is not in the log."""
        if self.live.ahead:
            self.fail(errors.moving())
        served = Served(self.live, self.replies, self.live.to_be_written(self.complete))
        self.replies, self.complete = [], 0
        return served

    @property
    def is_to_be_deleted(self) -> bool:
        return bool(self.behind) and isinstance(self.behind[0].command, Delete)

    def is_forsaken(self) -> bool:
        """Whether no caller waits for an answer."""
        return all(call.answer.done() for call in self.calls + self.behind)

    def fail(self, reason: ApiError) -> None:
        self.has_failed = True
        self.end([Reply(call, reason) for call in self.calls])

    def end(self, replies: list[Reply]) -> None:
        """Ends the work early; what is not in the log yet does not count."""
        self.live.events.clear()
        self.replies, self.complete, self.is_done = replies, 0, True


class Turns:
    """The bandits at work, round robin."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}  # by bandit, whose turn is next first
        self.taken: list[Work] = []  # in this round

    def __bool__(self) -> bool:
        return bool(self._works)

    def add(self, work: Work) -> None:
        self._works[work.live.row.name] = work

    def at_work(self, bandit: str) -> Work | None:
        return self._works.get(bandit)

    def take(self) -> Iterator[Work]:
        """Gives each bandit a turn until the slice is over; a turn that has begun is finished.

        New work comes first: most of it is done in no time.
        """
        self.taken, end = [], time.perf_counter() + SLICE
        begun = [name for name, work in self._works.items() if work.has_begun]
        for name in [name for name in self._works if name not in begun]:
            yield from self._turn(name)
            if time.perf_counter() > end:
                break
        for name in begun:
            yield from self._turn(name)
            if time.perf_counter() > end:
                return

    def _turn(self, name: str) -> Iterator[Work]:
        work = self._works.pop(name)
        self.taken.append(work)
        yield work
        if not work.is_done:
            self._works[name] = work

    def clear(self) -> list[Call]:
        """Ends all work; returns its calls, some of which are answered."""
        works = [*self.taken, *self._works.values()]
        self.taken, self._works = [], {}
        return [call for work in works for call in work.calls + work.behind]
