"""Leases: this worker's are renewed in time, and orphaned bandits are adopted.

Bandits that nobody owns are revived without being asked for, so that the windows of their decisions
pass in time.
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


class Lost(NamedTuple):
    """Another worker has the bandit now."""

    bandit: str
    lease: Lease


class Orphaned(NamedTuple):
    """No worker has this bandit, and its windows pass."""

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
        """Renews the leases of these bandits, as long as somebody can serve them."""
        self._thread = threading.Thread(
            target=self._run, args=(live_bandits, is_well), name="driftbandits-leases"
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread:
            self._thread.join()

    def release(self) -> None:
        """Gives up all bandits."""
        try:
            self._store.release(self._worker.name)
        except SQLAlchemyError:
            log.warning("the database is away; the leases will run out by themselves")

    def _run(self, live_bandits: Mapping[str, LiveBandit], is_well: Callable[[], bool]) -> None:
        while not self._stopped.wait(self._worker.ttl / 3):
            if is_well():  # or the leases run out, and another worker takes over
                self._renew(live_bandits)

    def _renew(self, live_bandits: Mapping[str, LiveBandit]) -> None:
        before = list(live_bandits.items())
        try:
            ours = self._store.renew(self._worker.name, self._worker.ttl)
            orphans = self._store.orphans(ADOPTED + len(self._reviver.broken))
        except SQLAlchemyError as error:
            log.warning("leases not renewed: %s", first_line(error))
            return
        for name, live in before:
            if live.row.id not in ours:
                self._report(Lost(name, live.lease))
        if self.adopts:
            self._adopt([name for name in [*ours.values(), *orphans] if name not in live_bandits])

    def _adopt(self, names: list[str]) -> None:
        """A few at a time; whoever is asked for waits behind them."""
        for name in list(filter(self._reviver.may_be_tried, names))[:ADOPTED]:
            self._report(Orphaned(name))
