"""Snapshots of bandits, written on background threads."""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.file import merged, packed
from driftbandits.error_text import first_line
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.snapshot_chain import NextSnapshot
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Snapshot
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

SNAPSHOT_EVERY = 5_000  # events
BYTES_PER_EVENT = 100  # of the policy's state, which every snapshot holds
LAST_SECONDS = 10.0  # for snapshots when the worker stops
TOGETHER, BYTES_TOGETHER = 100, 16_000_000  # of those in one transaction, about


class Taken(NamedTuple):
    """A snapshot of a bandit, as it is to be written."""

    live: LiveBandit
    snapshot: NextSnapshot
    row: Snapshot


class SnapshotWriter:
    def __init__(self, store: Store, metrics: Metrics, background: Executor) -> None:
        self._store, self._metrics, self._background = store, metrics, background
        self._writing: set[str] = set()  # bandits of which one is being written

    def is_due(self, live: LiveBandit) -> bool:
        """After many events, or more where what is written each time is large."""
        events = live.seq - live.snapshot_seq
        if events < SNAPSHOT_EVERY or live.events or live.row.name in self._writing:
            return False
        if live.book.is_growing:
            return False
        return events * BYTES_PER_EVENT >= live.book.learner.state_bytes

    def write_soon(self, live: LiveBandit) -> None:
        """On the engine's thread, where nothing changes meanwhile, when all is in the log."""
        self._writing.add(live.row.name)
        self._background.submit(self._write_one, live, live.snapshot())

    def write_last(self, live_bandits: Iterable[LiveBandit]) -> None:
        """When the engine's thread has ended: what would take longest to replay comes first.

        Where the time is over, the rest is in the log anyway.
        """
        end = time.monotonic() + LAST_SECONDS
        idle = [live for live in live_bandits if live.row.name not in self._writing]
        changed = [live for live in idle if live.seq > live.snapshot_seq]
        changed.sort(key=lambda live: live.snapshot_seq - live.seq)
        while changed:
            if time.monotonic() > end:
                log.warning("no time for %d snapshots; the log has it all", len(changed))
                break
            together: list[Taken] = []
            while changed and len(together) < TOGETHER and bytes_of(together) < BYTES_TOGETHER:
                live = changed.pop(0)
                together.append(taken(live, live.snapshot()))
            self._write(together)

    def _write_one(self, live: LiveBandit, snapshot: NextSnapshot) -> None:
        try:
            self._write([taken(live, snapshot)])
            if live.snapshots.is_long:
                self._merge(live)
        except Exception:
            live.snapshots.broken()  # what it held is in none: the next one must be whole
            log.exception("no snapshot of %r", live.row.name)
        finally:
            self._writing.discard(live.row.name)

    def _merge(self, live: LiveBandit) -> None:
        """What is in the store already, without asking the engine's thread for anything."""
        bandit = live.row.id
        try:
            base = self._store.read_snapshot(bandit)
            changes = self._store.read_changes(bandit, base[0]) if base else []
            if not base or not changes:
                return
            whole = merged(base[1], [blob for _, blob in changes])
            row = Snapshot(live.lease, changes[-1][0], whole)
            if not self._store.write_snapshots([row]) and all(self._store.are_kept([row])):
                live.snapshots.merged(row.seq, len(whole))
        except SQLAlchemyError as error:  # the next snapshot tries again
            log.warning("snapshots of %r are not merged: %s", live.row.name, first_line(error))
        except Exception:
            live.snapshots.broken()
            log.exception("snapshots of %r cannot be merged", live.row.name)

    def _write(self, new: list[Taken]) -> None:
        """In one transaction, and read back."""
        rows = [each.row for each in new]
        try:
            lost = self._store.write_snapshots(rows)
            intact = self._store.are_kept(rows)
        except SQLAlchemyError as error:
            log.warning("no snapshots: %s", first_line(error))
            lost, intact = {row.lease.bandit for row in rows}, [False] * len(rows)
        for (live, snapshot, row), is_intact in zip(new, intact, strict=True):
            if is_intact and row.lease.bandit not in lost:
                live.snapshots.written(snapshot, len(row.blob))
                self._metrics.snapshots.labels("written").inc()
                continue
            live.snapshots.broken()
            if row.lease.bandit not in lost:
                self._metrics.snapshots.labels("damaged").inc()
                log.error("a snapshot of %r (%d) does not read back", live.row.name, row.seq)


def taken(live: LiveBandit, snapshot: NextSnapshot) -> Taken:
    row = Snapshot(live.lease, snapshot.seq, packed(snapshot.contents), snapshot.base)
    return Taken(live, snapshot, row)


def bytes_of(together: list[Taken]) -> int:
    return sum(len(each.row.blob) for each in together)
