"""Claims, loads and compiles bandits on background threads."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from math import inf
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import from_bytes
from driftbandits.check import InputError
from driftbandits.error_text import first_line
from driftbandits.logs.corrections import as_corrected, last_seq
from driftbandits.logs.replay import new_book, replay
from driftbandits.service import errors
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.monitor import CAPACITY
from driftbandits.service.engine.worker import Worker
from driftbandits.service.errors import ApiError, OwnedElsewhere
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import BanditRow, Lease
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

PAUSE = 60.0  # seconds until a bandit that could not be revived is tried again


class Loaded(NamedTuple):
    """A bandit was revived, or why it was not."""

    bandit: str
    live: LiveBandit | Exception


class Revived(NamedTuple):
    live: LiveBandit
    mismatches: int  # decisions that came out differently when they were made again


class Reviver:
    def __init__(
        self,
        store: Store,
        worker: Worker,
        metrics: Metrics,
        background: Executor,
        report: Callable[[Loaded], None],
    ) -> None:
        self._store, self._worker, self._metrics = store, worker, metrics
        self._background, self._report = background, report
        self.broken: dict[str, float] = {}  # bandits that could not be revived, and when

    def load_soon(self, name: str) -> None:
        self._background.submit(self._load, name)

    def may_be_tried(self, name: str) -> bool:
        return time.monotonic() - self.broken.get(name, -inf) > PAUSE

    def _load(self, name: str) -> None:
        try:
            found: LiveBandit | Exception = self._claim(name)
        except (ApiError, OwnedElsewhere) as reason:
            found = reason
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            found = errors.no_database()
        except Exception:
            log.exception("bandit %r cannot be revived", name)
            self.broken[name] = time.monotonic()
            found = errors.broken_policy(name)
        self._report(Loaded(name, found))

    def _claim(self, name: str) -> LiveBandit:
        worker, row = self._worker, self._store.bandit(name)
        if row is None:
            raise errors.unknown_bandit(name)
        lease = self._store.claim(row.id, worker.name, worker.url, worker.ttl)
        if lease is None:
            row = self._store.bandit(name)
            raise OwnedElsewhere(row.url) if row and row.url else errors.moving()
        live, mismatches = revive(self._store, row._replace(url=worker.url), lease)
        live.book.learner.warm_up()
        if mismatches:
            log.error("%d decisions of %r came out differently", mismatches, name)
            self._metrics.mismatches.inc(mismatches)
        return live


def revive(store: Store, row: BanditRow, lease: Lease) -> Revived:
    """A bandit from its newest undamaged snapshot and the log after it."""
    corrections = store.corrections(row.id)
    book, seq = newest_book(store, row, since=last_seq(corrections))
    mismatches = 0
    while events := store.events(row.id, seq):
        mismatches += replay(book, events, corrections)
        seq += len(events)
    live = LiveBandit(row, lease, book, seq)
    live.corrections = corrections
    fill_monitor(live, store)
    return Revived(live, mismatches)


def newest_book(store: Store, row: BanditRow, since: int = 0) -> tuple[DecisionBook, int]:
    """With the seq of its last event; snapshots from before `since` hold wrong rewards."""
    for age in (0, 1):
        kept = store.read_snapshot(row.id, age)
        if kept and kept[0] >= since:
            try:
                return from_bytes(kept[1]), kept[0]
            except InputError as error:  # the log has it all, too
                log.warning("a snapshot of %r is not used: %s", row.name, error)
    return new_book(row.config, remember=0), 0


def fill_monitor(live: LiveBandit, store: Store) -> None:
    """The newest decisions and what became of them, for the page."""
    found = store.last_decisions(live.row.id, CAPACITY)
    newest = [as_corrected(logged, live.corrections) for logged in found]
    outcomes = [logged.outcome for logged in newest if logged.outcome]
    past = [logged.decision for logged in newest] + outcomes
    live.watch(sorted(past, key=lambda event: event.seq))
    monitor = live.monitor
    monitor.decisions, monitor.rewards, monitor.expired = live.book.counts
