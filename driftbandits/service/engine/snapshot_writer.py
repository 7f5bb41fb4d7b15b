"""Snapshots of bandits, written on background threads."""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Executor

import numpy as np
from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.file import packed
from driftbandits.error_text import first_line
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Lease, Snapshot
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

SNAPSHOT_EVERY = 5_000  # events
LAST_SECONDS = 10.0  # for snapshots when the worker stops
TOGETHER = 100  # of those in one transaction


class SnapshotWriter:
    def __init__(self, store: Store, metrics: Metrics, background: Executor) -> None:
        self._store, self._metrics, self._background = store, metrics, background
        self._writing: set[str] = set()  # bandits of which one is being written

    def is_due(self, live: LiveBandit) -> bool:
        due = live.seq - live.snapshot_seq >= SNAPSHOT_EVERY
        return due and live.row.name not in self._writing

    def write_soon(self, live: LiveBandit) -> None:
        """On the engine's thread, where nothing changes meanwhile, when all is in the log."""
        self._writing.add(live.row.name)
        live.snapshot_seq = live.seq
        self._background.submit(self._write_one, live.row.name, live.lease, *live.snapshot())

    def write_last(self, live_bandits: Iterable[LiveBandit]) -> None:
        """When the engine's thread has ended: what would take longest to replay comes first.

        Where the time is over, the rest is in the log anyway.
        """
        end = time.monotonic() + LAST_SECONDS
        changed = [live for live in live_bandits if live.seq > live.snapshot_seq]
        changed.sort(key=lambda live: live.snapshot_seq - live.seq)
        for first in range(0, len(changed), TOGETHER):
            if time.monotonic() > end:
                log.warning("no time for %d snapshots; the log has it all", len(changed) - first)
                break
            together = changed[first : first + TOGETHER]
            self._write([snapshot_of(live.lease, *live.snapshot()) for live in together])

    def _write_one(self, name: str, lease: Lease, seq: int, arrays: dict[str, np.ndarray]) -> None:
        try:
            self._write([snapshot_of(lease, seq, arrays)])
        finally:
            self._writing.discard(name)

    def _write(self, snapshots: list[Snapshot]) -> None:
        """Written in one transaction, and read back."""
        try:
            lost = self._store.write_snapshots(snapshots)
            for lease, seq, blob in snapshots:
                if lease.bandit in lost:
                    continue
                intact = self._store.read_snapshot(lease.bandit) == (seq, blob)
                self._metrics.snapshots.labels("written" if intact else "damaged").inc()
                if not intact:
                    log.error(
                        "a snapshot (bandit %d, seq %d) does not read back", lease.bandit, seq
                    )
        except SQLAlchemyError as error:
            log.warning("no snapshots: %s", first_line(error))


def snapshot_of(lease: Lease, seq: int, arrays: dict[str, np.ndarray]) -> Snapshot:
    return Snapshot(lease, seq, packed(arrays))
