"""What is done for bandits beside the engine's thread: reviving them, snapshots, leases.

Those that nobody looks after are taken in without being asked for, so that the windows of their
decisions pass in time.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.file import packed
from driftbandits.service import refusals
from driftbandits.service.gauges import Gauges
from driftbandits.service.live import LiveBandit, revive
from driftbandits.service.records import Lease
from driftbandits.service.refusals import Elsewhere, Refusal, first_line
from driftbandits.service.store import Store

log = logging.getLogger("driftbandits.service")

SNAPSHOT_EVERY = 5_000  # events
WOKEN = 5  # bandits at a time that nobody has asked for
PAUSE = 60.0  # seconds until a bandit that could not be revived is tried again


class Worker(NamedTuple):
    """Who looks after bandits, where the others reach it, and for how long a lease is."""

    name: str
    url: str
    ttl: float  # seconds


class Loaded(NamedTuple):
    """What came of looking after a bandit."""

    bandit: str
    live: LiveBandit | Exception


class Lost(NamedTuple):
    """Another worker has the bandit now."""

    bandit: str
    lease: Lease


class Wake(NamedTuple):
    """Nobody looks after this bandit, and its windows pass."""

    bandit: str


class Caretaker:
    def __init__(
        self,
        store: Store,
        worker: Worker,
        gauges: Gauges,
        tell: Callable[[Loaded | Lost | Wake], None],
    ) -> None:
        self._store, self._worker, self._gauges, self._tell = store, worker, gauges, tell
        self._snapshots: set[str] = set()  # bandits of which one is being written
        self.takes_in = True  # bandits that nobody has asked for
        self._broken: dict[str, float] = {}  # that could not be revived, and when
        self._aside = ThreadPoolExecutor(2, "driftbandits-aside")
        self._stopped = threading.Event()
        self._keeper: threading.Thread | None = None

    def start(self, lives: dict[str, LiveBandit], is_well: Callable[[], bool]) -> None:
        """Prolongs the leases of these bandits, as long as somebody can serve them."""
        self._keeper = threading.Thread(
            target=self._keep, args=(lives, is_well), name="driftbandits-keeper"
        )
        self._keeper.start()

    def stop(self, lives: dict[str, LiveBandit]) -> None:
        """Keeps a last snapshot of each, and gives them up."""
        self._stopped.set()
        if self._keeper:
            self._keeper.join()
        self._aside.shutdown()
        for live in lives.values():
            if live.seq > live.snapshot_seq:
                self._write_snapshot(live.row.name, live.lease, *live.snapshot())
        try:
            self._store.release(self._worker.name)
        except SQLAlchemyError:
            log.warning("the database is away; the leases will run out by themselves")

    # Reviving

    def load(self, name: str) -> None:
        self._aside.submit(self._load, name)

    def _load(self, name: str) -> None:
        try:
            found: LiveBandit | Exception = self._claim(name)
        except (Refusal, Elsewhere) as told:
            found = told
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            found = refusals.no_database()
        except Exception:
            log.exception("bandit %r cannot be revived", name)
            self._broken[name] = time.monotonic()
            found = refusals.broken(name)
        self._tell(Loaded(name, found))

    def _claim(self, name: str) -> LiveBandit:
        worker, row = self._worker, self._store.bandit(name)
        if row is None:
            raise refusals.unknown_bandit(name)
        lease = self._store.claim(row.id, worker.name, worker.url, worker.ttl)
        if lease is None:
            row = self._store.bandit(name)
            raise Elsewhere(row.url) if row and row.url else refusals.moving()
        live = revive(self._store, row._replace(url=worker.url), lease)
        live.agent.warm_up()
        if live.mismatches:
            log.error("%d decisions of %r came out differently", live.mismatches, name)
            self._gauges.mismatches.inc(live.mismatches)
        return live

    # Snapshots

    def snapshot_is_due(self, live: LiveBandit) -> bool:
        due = live.seq - live.snapshot_seq >= SNAPSHOT_EVERY
        return due and live.row.name not in self._snapshots

    def keep_snapshot(self, live: LiveBandit) -> None:
        """On the engine's thread, where nothing changes meanwhile, when all is in the log."""
        self._snapshots.add(live.row.name)
        live.snapshot_seq = live.seq
        self._aside.submit(self._write_snapshot, live.row.name, live.lease, *live.snapshot())

    def _write_snapshot(
        self, name: str, lease: Lease, seq: int, arrays: dict[str, np.ndarray]
    ) -> None:
        """Written, and read back."""
        try:
            blob = packed(arrays)
            if self._store.write_snapshot(lease, seq, blob):
                whole = self._store.read_snapshot(lease.bandit) == (seq, blob)
                self._gauges.snapshots.labels("written" if whole else "damaged").inc()
                if not whole:
                    log.error("the snapshot of %r at event %d does not read back", name, seq)
        except SQLAlchemyError as error:
            log.warning("no snapshot of %r: %s", name, first_line(error))
        finally:
            self._snapshots.discard(name)

    # Leases

    def _keep(self, lives: dict[str, LiveBandit], is_well: Callable[[], bool]) -> None:
        while not self._stopped.wait(self._worker.ttl / 3):
            before: list[tuple[str, Any]] = list(lives.items())
            if not is_well():
                continue  # the leases run out, and another worker takes over
            try:
                ours = self._store.renew(self._worker.name, self._worker.ttl)
                orphans = self._store.orphans(WOKEN + len(self._broken))
            except SQLAlchemyError as error:
                log.warning("leases not prolonged: %s", first_line(error))
                continue
            for name, live in before:
                if live.row.id not in ours:
                    self._tell(Lost(name, live.lease))
            if self.takes_in:
                self._wake([name for name in [*ours.values(), *orphans] if name not in lives])

    def _wake(self, names: list[str]) -> None:
        """A few at a time; whoever is asked for waits behind them."""
        now = time.monotonic()
        well = [name for name in names if now - self._broken.get(name, -inf) > PAUSE]
        for name in well[:WOKEN]:
            self._tell(Wake(name))
