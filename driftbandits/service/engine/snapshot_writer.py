"""Snapshots of bandits, written on background threads."""

import logging
from concurrent.futures import Executor

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.file import FrozenBook, arrays_of, packed
from driftbandits.error_text import first_line
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Lease
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

SNAPSHOT_EVERY = 5_000  # events, or as many as there are open decisions


class SnapshotWriter:
    def __init__(self, store: Store, metrics: Metrics, background: Executor) -> None:
        self._store, self._metrics, self._background = store, metrics, background
        self._writing: set[str] = set()  # bandits of which one is being written

    def is_due(self, live: LiveBandit) -> bool:
        if live.row.name in self._writing:
            return False
        live.book.open.release()
        often = max(SNAPSHOT_EVERY, len(live.book.open.waiting))  # the more, the longer it takes
        return not live.events and live.seq - live.snapshot_seq >= often

    def write_soon(self, live: LiveBandit) -> None:
        """On the engine's thread, where nothing changes meanwhile, when all is in the log."""
        self._writing.add(live.row.name)
        live.snapshot_seq = live.seq
        self._background.submit(self._write, live.row.name, live.lease, *live.snapshot())

    def write_last(self, live: LiveBandit) -> None:
        """When the engine's thread has ended."""
        if live.seq > live.snapshot_seq:
            self._write(live.row.name, live.lease, *live.snapshot())

    def _write(self, name: str, lease: Lease, seq: int, book: FrozenBook) -> None:
        """Written, and read back."""
        try:
            blob = packed(arrays_of(book))
            if self._store.write_snapshot(lease, seq, blob):
                intact = self._store.read_snapshot(lease.bandit) == (seq, blob)
                self._metrics.snapshots.labels("written" if intact else "damaged").inc()
                if not intact:
                    log.error("the snapshot of %r at event %d does not read back", name, seq)
        except SQLAlchemyError as error:
            log.warning("no snapshot of %r: %s", name, first_line(error))
        finally:
            self._writing.discard(name)
