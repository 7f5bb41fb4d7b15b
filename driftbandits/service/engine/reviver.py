"""Claims, loads and compiles bandits on background threads."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from math import inf
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import from_bytes
from driftbandits.agents.file_bytes import is_intact
from driftbandits.agents.settings import CHANGEABLE
from driftbandits.check import InputError
from driftbandits.error_text import first_line
from driftbandits.logs.corrections import Corrections, as_corrected, last_seq
from driftbandits.logs.replay import replay, settings_of_book, stored_book
from driftbandits.service import errors
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.monitor import CAPACITY
from driftbandits.service.engine.snapshot_plan import SnapshotPlan
from driftbandits.service.engine.worker import Worker
from driftbandits.service.errors import ApiError, OwnedElsewhere
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import BanditRow, Lease
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

PAUSE = 60.0  # seconds until a bandit that could not be revived is tried again


class Loaded(NamedTuple):
    """A revived bandit, or why it could not be revived."""

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


class FromSnapshot(NamedTuple):
    """The contents of a snapshot, or None for the log alone."""

    book: DecisionBook
    seq: int  # of the last event that it has seen
    segments: set[int]  # that it consists of


def revive(store: Store, row: BanditRow, lease: Lease) -> Revived:
    """Revives a bandit from its newest usable snapshot and the log after it."""
    corrections = store.corrections(row.id)
    for found in from_snapshots(store, row, since=last_seq(corrections)):
        try:
            last, mismatches = replay_rest(store, row, found, corrections)
        except Exception as error:
            if not found.seq or isinstance(error, SQLAlchemyError):  # there is nothing else to try
                raise
            log.warning("a snapshot of %r does not fit its log: %r", row.name, error)
            continue
        return Revived(new_live_bandit(store, row, lease, found, last, corrections), mismatches)
    raise AssertionError("the log alone is always tried")


def new_live_bandit(
    store: Store,
    row: BanditRow,
    lease: Lease,
    found: FromSnapshot,
    last: int,
    corrections: Corrections,
) -> LiveBandit:
    live = LiveBandit(row, lease, found.book, last)
    live.snapshot_seq = found.seq
    live.snapshots = SnapshotPlan(store.segments.numbers(row.id), found.segments)
    live.corrections = corrections
    fill_monitor(live, store)
    return live


def replay_rest(
    store: Store,
    row: BanditRow,
    found: FromSnapshot,
    corrections: Corrections,
    *,
    whole: bool = False,
) -> tuple[int, int]:
    """Replays the rest; returns the last seq and how many decisions came out differently."""
    seq, mismatches = found.seq, 0
    while events := store.events(row.id, seq):
        mismatches += replay(found.book, events, corrections, whole=whole)
        seq += len(events)
    return seq, mismatches


def newest_book(store: Store, row: BanditRow) -> tuple[DecisionBook, int]:
    """The newest usable book, with the seq of its last event."""
    found = next(from_snapshots(store, row))
    return found.book, found.seq


def from_snapshots(store: Store, row: BanditRow, since: int = 0) -> Iterator[FromSnapshot]:
    """Yields each usable snapshot, newest first, and then the log alone.

    Those from before `since` hold rewards that were corrected there.
    """
    for age in (0, 1):
        kept = store.read_snapshot(row.id, age)
        if kept is None or kept[0] < since:
            break
        changes = store.read_changes(row.id, kept[0])
        for count in sorted({intact(changes), 0}, reverse=True):
            try:
                yield from_snapshot(store, row, kept, changes[:count])
            except InputError as error:  # the log has it all, too
                log.warning("a snapshot of %r is not used: %s", row.name, error)
    yield from_log_alone(store, row)


def from_log_alone(store: Store, row: BanditRow) -> FromSnapshot:
    return FromSnapshot(stored_book(row.config, remember=0, folder=store.folder), 0, set())


def from_snapshot(
    store: Store, row: BanditRow, kept: tuple[int, bytes], changes: list[tuple[int, bytes]]
) -> FromSnapshot:
    seq, blobs = (changes or [kept])[-1][0], [blob for _, blob in changes]

    def read(number: int) -> bytes:
        segment = store.segments.read(row.id, number)
        if segment is None:
            raise InputError(f"segment {number} is missing")
        return segment

    book = from_bytes(kept[1], changes=blobs, read=read, folder=store.folder)
    check_fit(store, row, book, seq)
    segments = {block.segment for block in book.open.blocks if block.segment is not None}
    return FromSnapshot(book, seq, segments)


def intact(changes: list[tuple[int, bytes]]) -> int:
    """How many changes can be read, one after the other."""
    for count, (_, blob) in enumerate(changes):
        if not is_intact(blob):
            return count
    return len(changes)


def check_fit(store: Store, row: BanditRow, book: DecisionBook, seq: int) -> None:
    """Refuses a snapshot of another bandit, or of a log that was longer."""
    arms, settings = row.config["arms"], settings_of_book(row.config, remember=0)
    first = book.settings._replace(**{name: getattr(settings, name) for name in CHANGEABLE})
    if (first, book.arms.names[: len(arms)]) != (settings, list(arms)):
        raise InputError("it is of a bandit with other settings")
    decisions, rewards, expired = book.counts
    if decisions != rewards + expired + len(book.open):
        raise InputError("decisions are missing")
    if sum(book.counts) > seq or not store.events(row.id, seq - 1, limit=1):
        raise InputError("it does not fit the log")


def fill_monitor(live: LiveBandit, store: Store) -> None:
    """Fills the page's monitor with the newest decisions and their outcomes."""
    found = store.last_decisions(live.row.id, CAPACITY)
    newest = [as_corrected(logged, live.corrections) for logged in found]
    outcomes = [logged.outcome for logged in newest if logged.outcome]
    past = [logged.decision for logged in newest] + outcomes
    live.watch(sorted(past, key=lambda event: event.seq))
    monitor = live.monitor
    monitor.decisions, monitor.rewards, monitor.expired = live.book.counts
