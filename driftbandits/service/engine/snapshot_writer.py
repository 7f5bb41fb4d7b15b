"""Writes snapshots of bandits on background threads, after their new segments."""

import logging
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from math import inf
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.file_changes import Contents
from driftbandits.agents.segments import NewSegment, packed_segment, packed_snapshot
from driftbandits.error_text import first_line
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.snapshot_plan import NextSnapshot
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Segment, Snapshot
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

SNAPSHOT_EVERY = 5_000  # events
BYTES_PER_EVENT = 100  # of what every snapshot holds: the policy's state, a bit per open decision
LAST_SECONDS = 10.0  # for snapshots when the worker stops
TOGETHER, BYTES_TOGETHER = 100, 16_000_000  # of those in one transaction, about
SEGMENT_BYTES_TOGETHER = 4_000_000  # while the log waits for its turn to be written
DELETED_TOGETHER = 4  # segments


class Taken(NamedTuple):
    """A snapshot of a bandit to write."""

    live: LiveBandit
    snapshot: NextSnapshot
    row: Snapshot


class SnapshotWriter:
    def __init__(self, store: Store, metrics: Metrics, background: Executor) -> None:
        self._store, self._metrics, self._background = store, metrics, background
        self._writing: set[str] = set()  # bandits of which one is being written

    def is_due(self, live: LiveBandit) -> bool:
        """Whether a snapshot is due: after many events, more if the state is large."""
        events = live.seq - live.snapshot_seq
        if events < SNAPSHOT_EVERY or live.events or live.row.name in self._writing:
            return False
        book = live.book
        bits = len(book.open.blocks) * book.open.block_rows
        return events * BYTES_PER_EVENT >= book.learner.state_bytes + bits // 8

    def write_soon(self, live: LiveBandit) -> None:
        """Takes a snapshot on the engine's thread, when everything is in the log."""
        self._writing.add(live.row.name)
        self._background.submit(self._write_one, live, live.snapshot())

    def write_last(self, live_bandits: Iterable[LiveBandit]) -> None:
        """Writes last snapshots after the engine has ended, those that save most first.

        Where the time is over, the rest is in the log anyway.
        """
        end = time.monotonic() + LAST_SECONDS
        idle = [live for live in live_bandits if live.row.name not in self._writing]
        changed = [live for live in idle if live.seq > live.snapshot_seq]
        changed.sort(key=lambda live: live.snapshot_seq - live.seq)
        while changed:
            if time.monotonic() > end:
                log.warning("no time for %d snapshots; the log has everything", len(changed))
                break
            together: list[Taken] = []
            while changed and len(together) < TOGETHER and bytes_of(together) < BYTES_TOGETHER:
                together += self._last_of(changed.pop(0), end)
            if together:
                self._write(together)

    def _last_of(self, live: LiveBandit, end: float) -> list[Taken]:
        """The last snapshot, or none if not all of its segments could be written."""
        while True:
            snapshot = live.snapshot()
            if not self._write_segments(live, snapshot.new, end):
                return []
            if snapshot.contents:
                return [taken(live, snapshot, snapshot.contents)]

    def _write_one(self, live: LiveBandit, snapshot: NextSnapshot) -> None:
        try:
            if self._write_segments(live, snapshot.new) and snapshot.contents:
                self._write([taken(live, snapshot, snapshot.contents)])
        except Exception:
            log.exception("no snapshot of %r", live.row.name)
        finally:
            self._writing.discard(live.row.name)

    def _write_segments(self, live: LiveBandit, new: list[NewSegment], end: float = inf) -> bool:
        """Writes segments; returns whether all were written. Others come with the next snapshot."""
        for group in grouped(new):
            if end < inf and time.monotonic() > end:
                log.warning("no time for a snapshot of %r; the log has everything", live.row.name)
                return False
            rows = [row for _, row in group]
            try:
                if not self._store.segments.write(live.lease, rows):
                    return False
                found = [self._store.segments.read(live.row.id, row.number) for row in rows]
            except SQLAlchemyError as error:
                log.warning("no snapshot of %r: %s", live.row.name, first_line(error))
                return False
            for (segment, row), blob in zip(group, found, strict=True):
                if blob != row.blob:
                    self._note_damage(live, f"segment {row.number}")
                    return False
                segment.block.segment = row.number
        return True

    def _write(self, new: list[Taken]) -> None:
        """Writes snapshots in one transaction and reads them back."""
        rows = [each.row for each in new]
        try:
            lost = self._store.write_snapshots(rows)
            intact = self._store.are_kept(rows)
        except SQLAlchemyError as error:
            log.warning("no snapshots: %s", first_line(error))
            return
        for (live, snapshot, row), is_intact in zip(new, intact, strict=True):
            if row.lease.bandit in lost:
                continue
            if is_intact:
                self._metrics.snapshots.labels("written").inc()
                self._delete_unused(live, live.snapshots.written(snapshot))
            else:
                self._note_damage(live, f"snapshot {row.seq}")

    def _note_damage(self, live: LiveBandit, what: str) -> None:
        self._metrics.snapshots.labels("damaged").inc()
        log.error("%s of %r does not read back", what, live.row.name)

    def _delete_unused(self, live: LiveBandit, numbers: list[int]) -> None:
        """Deletes a few unused segments at a time; the next snapshot finds the rest."""
        for first in range(0, len(numbers), DELETED_TOGETHER):
            some = numbers[first : first + DELETED_TOGETHER]
            try:
                self._store.segments.delete(live.lease, some)
            except SQLAlchemyError as error:
                log.warning("segments of %r are not deleted: %s", live.row.name, first_line(error))
                return
            live.snapshots.deleted(some)


Group = list[tuple[NewSegment, Segment]]


def grouped(new: list[NewSegment]) -> Iterator[Group]:
    """Groups snapshots with their bytes, some megabytes at a time."""
    group: Group = []
    for segment in new:
        group.append((segment, Segment(segment.number, packed_segment(segment))))
        if sum(len(row.blob) for _, row in group) >= SEGMENT_BYTES_TOGETHER:
            yield group
            group = []
    if group:
        yield group


def taken(live: LiveBandit, snapshot: NextSnapshot, contents: Contents) -> Taken:
    row = Snapshot(live.lease, snapshot.seq, packed_snapshot(contents))
    return Taken(live, snapshot, row)


def bytes_of(together: list[Taken]) -> int:
    return sum(len(each.row.blob) for each in together)
