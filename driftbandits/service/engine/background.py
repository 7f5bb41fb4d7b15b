"""Work beside the engine, on other threads, so that no bandit waits for it."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from driftbandits.agents.learner import Learner
from driftbandits.service.engine.correcting import Rebuilder
from driftbandits.service.engine.lease_keeper import LeaseKeeper
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.log_deleter import LogDeleter
from driftbandits.service.engine.reviver import Reviver
from driftbandits.service.engine.snapshot_writer import SnapshotWriter
from driftbandits.service.engine.worker import Worker
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

LAST_WAIT = 10.0  # seconds, when the engine stops


class Background:
    """The background tasks; they report their results to the engine."""

    def __init__(
        self, store: Store, worker: Worker, metrics: Metrics, report: Callable[[Any], None]
    ) -> None:
        self._threads = ThreadPoolExecutor(2, "driftbandits-background")
        self.reviver = Reviver(store, worker, metrics, self._threads, report)
        self.rebuilder = Rebuilder(store, report)
        self.snapshots = SnapshotWriter(store, metrics, self._threads)
        self.leases = LeaseKeeper(store, worker, self.reviver, report)
        self.deleter = LogDeleter(store)
        self._compiling: set[Learner] = set()

    def start(self, live_bandits: Mapping[str, LiveBandit], is_well: Callable[[], bool]) -> None:
        self.leases.start(live_bandits, is_well)
        self.deleter.start()

    def compile_soon(self, learner: Learner) -> None:
        """Compiles what makes the large batches of a bandit quicker."""
        if learner not in self._compiling:
            self._compiling.add(learner)
            self._threads.submit(self._compile, learner)

    def _compile(self, learner: Learner) -> None:
        try:
            learner.compile_for_many()
        except Exception:
            log.exception("large batches stay slower")
        else:
            self._compiling.discard(learner)

    def stop(self, live_bandits: Mapping[str, LiveBandit]) -> None:
        """Writes the last snapshots of the bandits and releases them."""
        self.leases.stop()
        self.deleter.stop()
        self.rebuilder.stop()
        self._end_threads()
        try:
            self.snapshots.write_last(live_bandits.values())
        finally:
            self.leases.release()

    def _end_threads(self) -> None:
        """Waits for writers and revivers, but not for long: the log has everything."""
        end = partial(self._threads.shutdown, cancel_futures=True)
        (waiting := threading.Thread(target=end, daemon=True)).start()
        waiting.join(LAST_WAIT)
