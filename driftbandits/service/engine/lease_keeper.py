"""The worker's lease is renewed in time, and orphaned bandits are adopted.

A worker that is alone with its database has a lease for ever, so that nothing is written while it
is idle. Bandits that nobody owns are revived without being asked for, so that the windows of their
decisions pass in time.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.error_text import first_line
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import Reviver
from driftbandits.service.engine.worker import Worker
from driftbandits.service.store.records import Lease
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

ADOPTED = 5  # bandits at a time that nobody has asked for
LOOK_EVERY = 1.0  # seconds, without a lease to renew


class Lost(NamedTuple):
    """Another worker owns the bandit now."""

    bandit: str
    lease: Lease


class Orphaned(NamedTuple):
    """No worker owns this bandit, whose windows pass."""

    bandit: str


class LeaseKeeper:
    def __init__(
        self,
        store: Store,
        worker: Worker,
        reviver: Reviver,
        report: Callable[[Lost | Orphaned], None],
    ) -> None:
        self._store, self._worker, self._reviver, self._report = store, worker, reviver, report
        self.adopts = True  # bandits that nobody has asked for
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, live_bandits: Mapping[str, LiveBandit], is_well: Callable[[], bool]) -> None:
        """Renews the lease while the engine can serve the bandits."""
        self._thread = threading.Thread(
            target=self._run, args=(live_bandits, is_well), name="driftbandits-leases"
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread:
            self._thread.join()

    def release(self) -> None:
        """Releases all bandits."""
        try:
            self._store.release(self._worker.name)
        except SQLAlchemyError:
            log.warning("the database cannot be reached; the lease will expire by itself")

    def _run(self, live_bandits: Mapping[str, LiveBandit], is_well: Callable[[], bool]) -> None:
        self._register()
        pause = self._worker.ttl / 3 if self._worker.may_expire else LOOK_EVERY
        while not self._stopped.wait(pause):
            if is_well():  # or the lease runs out, and another worker takes over
                self.look_after(live_bandits)

    def _register(self) -> None:
        """Registers the worker with its current url, even if the lease is still alive."""
        try:
            self._store.renew(*self._worker)
            self._store.forget_dead_workers()
        except SQLAlchemyError as error:
            log.warning("the worker is not registered yet: %s", first_line(error))

    def look_after(self, live_bandits: Mapping[str, LiveBandit]) -> None:
        """Renews the lease, reports bandits that were lost, and adopts orphans."""
        before = list(live_bandits.items())
        try:
            if self._worker.may_expire:
                self._store.renew(*self._worker)
            ours = self._ours([live for _, live in before])
            orphans = self._store.orphans(ADOPTED + len(self._reviver.broken))
        except SQLAlchemyError as error:
            log.warning("the lease is not renewed: %s", first_line(error))
            return
        for name, live in before:
            if live.row.id not in ours:
                self._report(Lost(name, live.lease))
        if self.adopts:
            self._adopt([name for name in [*ours.values(), *orphans] if name not in live_bandits])

    def _ours(self, live_bandits: list[LiveBandit]) -> dict[int, str]:
        """The bandits we own by the database, which is read in full only if something differs."""
        ids = [live.row.id for live in live_bandits]
        if self._store.fingerprint(self._worker.name) == (len(ids), sum(ids)):
            return {live.row.id: live.row.name for live in live_bandits}
        return self._store.owned(self._worker.name)

    def _adopt(self, names: list[str]) -> None:
        """Adopts a few orphans at a time."""
        for name in list(filter(self._reviver.may_be_tried, names))[:ADOPTED]:
            self._report(Orphaned(name))
