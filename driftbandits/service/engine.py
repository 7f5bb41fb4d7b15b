"""The one thread that decides and learns, for all bandits of this worker.

It takes everything that has come in since it last looked, lets the bandits answer, commits all of
their events in one transaction, and only then hands out the answers: so one flush of the disk
serves all callers that came at the same time, and nothing is said that could be forgotten.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.file import packed
from driftbandits.agents.requests import Request
from driftbandits.service import refusals
from driftbandits.service.gauges import Gauges
from driftbandits.service.live import LiveBandit, revive
from driftbandits.service.records import Lease
from driftbandits.service.refusals import Elsewhere, Refusal, first_line
from driftbandits.service.store import Store

log = logging.getLogger("driftbandits.service")

TICK = 0.5  # seconds between two looks at windows that pass
SNAPSHOT_EVERY = 5_000  # events
TOGETHER = 2_000  # callers served by one transaction, at the most


class Decide(NamedTuple):
    requests: list[Request]


class Reward(NamedTuple):
    pairs: list[tuple[str, float]]


class ChangeArm(NamedTuple):
    """Add, retire or restore an arm, then look."""

    kind: str
    name: str
    then: Callable[[LiveBandit], Any]


class Delete(NamedTuple):
    """The bandit, its log and its snapshots."""


class Look(NamedTuple):
    """At a bandit, with a function that changes nothing."""

    at: Callable[[LiveBandit], Any]


Wish = Decide | Reward | ChangeArm | Delete | Look


class Call(NamedTuple):
    bandit: str
    wish: Wish
    answer: asyncio.Future[Any]


class Loaded(NamedTuple):
    """What came of looking after a bandit."""

    bandit: str
    live: LiveBandit | Exception


class Lost(NamedTuple):
    """Another worker has the bandit now."""

    bandit: str
    lease: Lease


Reply = tuple[Call, Any]


class Engine:
    """Bandits that this worker looks after, and the thread that they live on."""

    def __init__(self, store: Store, worker: str, url: str, ttl: float, gauges: Gauges) -> None:
        self.store, self.worker, self.url, self.ttl = store, worker, url, ttl
        self.gauges = gauges
        self.lives: dict[str, LiveBandit] = {}
        self._waiting: dict[str, list[Call]] = {}  # for a bandit that is being revived
        self._inbox: queue.SimpleQueue[Call | Loaded | Lost | None] = queue.SimpleQueue()
        self._snapshots: set[str] = set()  # bandits of which one is being written
        self._aside = ThreadPoolExecutor(2, "driftbandits-aside")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandits-engine")
        self._keeper = threading.Thread(target=self._keep, name="driftbandits-keeper")
        self._ticked = 0.0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._keeper.start()

    def submit(self, bandit: str, wish: Wish) -> asyncio.Future[Any]:
        """Its answer, or a Refusal, or Elsewhere; on the event loop's thread."""
        call = Call(bandit, wish, self._loop.create_future())
        self._inbox.put(call)
        return call.answer

    def stop(self) -> None:
        """Finishes what was accepted, keeps snapshots, gives up the bandits."""
        self._stopped.set()
        self._inbox.put(None)
        self._thread.join()
        self._keeper.join()
        self._aside.shutdown()
        try:
            for live in self.lives.values():
                if live.seq > live.snapshot_seq:
                    self._write_snapshot(live.row.name, live.lease, *live.snapshot())
            self.store.release(self.worker)
        except SQLAlchemyError:
            log.warning("the database is away; the log has everything that a snapshot would have")

    # The thread

    def _run(self) -> None:
        while True:
            came = self._collect()
            calls = [item for item in came if isinstance(item, Call)]
            for item in came:
                if isinstance(item, Loaded):
                    calls += self._settle(item)
                elif isinstance(item, Lost):
                    self._drop(item.bandit, item.lease)
            self._serve(calls)
            if self._stopped.is_set() and self._inbox.empty() and not self._waiting:
                return

    def _collect(self) -> list[Any]:
        """Everything that has come in, after waiting for the first."""
        came: list[Any] = []
        try:
            came.append(self._inbox.get(timeout=TICK))
            self._let_others_in()
            while len(came) < TOGETHER:
                came.append(self._inbox.get_nowait())
        except queue.Empty:
            pass
        return came

    def _let_others_in(self) -> None:
        """Hands over the interpreter while more is coming in: larger groups cost less."""
        before = -1
        while self._inbox.qsize() > before:
            before = self._inbox.qsize()
            time.sleep(0)

    def _settle(self, loaded: Loaded) -> list[Call]:
        """A bandit is here: its callers are served. Or it is not: they are told."""
        calls = self._waiting.pop(loaded.bandit, [])
        if isinstance(loaded.live, LiveBandit):
            self.lives[loaded.bandit] = loaded.live
            return calls
        self._hand_out([(call, loaded.live) for call in calls])
        return []

    def _serve(self, calls: list[Call]) -> None:
        now = time.time()
        by_bandit: dict[str, list[Call]] = {}
        for call in calls:
            by_bandit.setdefault(call.bandit, []).append(call)
        if now - self._ticked > TICK:
            self._ticked = now
            for name in self.lives:
                by_bandit.setdefault(name, [])
        served: dict[str, list[Reply]] = {}
        for name, theirs in by_bandit.items():
            live = self.lives.get(name)
            if live is None:
                self._revive(name, theirs)
            else:
                served[name] = self._answer(live, theirs, now)
        replies = self._commit(served)
        self._hand_out(replies)

    def _revive(self, name: str, calls: list[Call]) -> None:
        if name in self._waiting:
            self._waiting[name] += calls
        elif calls:
            self._waiting[name] = calls
            self._aside.submit(self._load, name)

    def _answer(self, live: LiveBandit, calls: list[Call], now: float) -> list[Reply]:
        try:
            live.expire(now)
            return [
                reply for part in stretches(calls) for reply in self._answer_part(live, part, now)
            ]
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            failure: Exception = refusals.no_database()
        except Exception:
            log.exception("bandit %r failed", live.row.name)
            failure = refusals.broken(live.row.name)
        self._drop(live.row.name, live.lease)
        return [(call, failure) for call in calls]

    def _answer_part(self, live: LiveBandit, calls: list[Call], now: float) -> list[Reply]:
        """Calls of one kind, together."""
        wish = calls[0].wish
        if isinstance(wish, Decide):
            asked = [call.wish.requests for call in calls]  # type: ignore[union-attr]
            return list(zip(calls, live.decide(asked, now, self.store), strict=True))
        if isinstance(wish, Reward):
            pairs = [pair for call in calls for pair in call.wish.pairs]  # type: ignore[union-attr]
            statuses = iter(live.reward(pairs, now, self.store))
            return [(call, [next(statuses) for _ in call.wish.pairs]) for call in calls]  # type: ignore[union-attr]
        return [(call, self._do(live, call.wish, now)) for call in calls]

    def _do(self, live: LiveBandit, wish: Wish, now: float) -> Any:
        try:
            if isinstance(wish, Look):
                return wish.at(live)
            if isinstance(wish, ChangeArm):
                live.change_arm(wish.kind, wish.name, now)
                return wish.then(live)
            self._drop(live.row.name, live.lease)
            return None if self.store.delete_bandit(live.lease) else refusals.moving()
        except Refusal as refusal:
            return refusal

    def _commit(self, served: dict[str, list[Reply]]) -> list[Reply]:
        """All events in one transaction; the answers of those that could not be written change."""
        busy = [self.lives[name] for name in served if name in self.lives]
        busy = [live for live in busy if live.events]
        failure: Refusal = refusals.moving()
        lost: set[int] = set()
        if busy:
            try:
                with self.gauges.commit_seconds.time():
                    lost = self.store.append([(x.lease, x.seq, x.events) for x in busy])
            except SQLAlchemyError as error:
                log.warning("not committed: %s", first_line(error))
                failure, lost = refusals.no_database(), {live.row.id for live in busy}
        for live in busy:
            name = live.row.name
            if live.row.id in lost:
                self._drop(name, live.lease)
                served[name] = [(call, failure) for call, _ in served[name]]
            else:
                self.gauges.count(live.committed())
                self._consider_snapshot(live)
        return [reply for replies in served.values() for reply in replies]

    def _hand_out(self, replies: list[Reply]) -> None:
        if replies:
            self._loop.call_soon_threadsafe(hand_out, replies)

    def _drop(self, name: str, lease: Lease) -> None:
        """Forgets a bandit; whoever asks for it next finds it in the log."""
        live = self.lives.get(name)
        if live is not None and live.lease == lease:
            del self.lives[name]

    # Aside

    def _load(self, name: str) -> None:
        try:
            self._inbox.put(Loaded(name, self._claim(name)))
        except (Refusal, Elsewhere) as told:
            self._inbox.put(Loaded(name, told))
        except SQLAlchemyError:
            self._inbox.put(Loaded(name, refusals.no_database()))
        except Exception:
            log.exception("bandit %r cannot be revived", name)
            self._inbox.put(Loaded(name, refusals.broken(name)))

    def _claim(self, name: str) -> LiveBandit:
        row = self.store.bandit(name)
        if row is None:
            raise refusals.unknown_bandit(name)
        lease = self.store.claim(row.id, self.worker, self.url, self.ttl)
        if lease is None:
            row = self.store.bandit(name)
            raise Elsewhere(row.url) if row and row.url else refusals.moving()
        live = revive(self.store, row._replace(url=self.url), lease)
        if live.mismatches:
            log.error("%d decisions of %r came out differently", live.mismatches, name)
            self.gauges.mismatches.inc(live.mismatches)
        return live

    def _consider_snapshot(self, live: LiveBandit) -> None:
        name = live.row.name
        if live.seq - live.snapshot_seq >= SNAPSHOT_EVERY and name not in self._snapshots:
            self._snapshots.add(name)
            live.snapshot_seq = live.seq
            self._aside.submit(self._write_snapshot, name, live.lease, *live.snapshot())

    def _write_snapshot(self, name: str, lease: Lease, seq: int, arrays: dict[str, Any]) -> None:
        """Written, and read back."""
        try:
            blob = packed(arrays)
            if self.store.write_snapshot(lease, seq, blob):
                whole = self.store.read_snapshot(lease.bandit) == (seq, blob)
                self.gauges.snapshots.labels("written" if whole else "damaged").inc()
                if not whole:
                    log.error("the snapshot of %r at event %d does not read back", name, seq)
        except SQLAlchemyError as error:
            log.warning("no snapshot of %r: %s", name, first_line(error))
        finally:
            self._snapshots.discard(name)

    def _keep(self) -> None:
        """Prolongs the leases, and notices those that are gone."""
        while not self._stopped.wait(self.ttl / 3):
            before = list(self.lives.items())
            try:
                ours = self.store.renew(self.worker, self.ttl)
            except SQLAlchemyError as error:
                log.warning("leases not prolonged: %s", first_line(error))
                continue
            for name, live in before:
                if live.row.id not in ours:
                    self._inbox.put(Lost(name, live.lease))


def stretches(calls: list[Call]) -> list[list[Call]]:
    """Calls of one kind together, rewards before decisions; a change of arms keeps its place."""
    parts: list[list[Call]] = []
    rewards: list[Call] = []
    decisions: list[Call] = []
    for call in calls:
        if isinstance(call.wish, Reward):
            rewards.append(call)
        elif isinstance(call.wish, Decide):
            decisions.append(call)
        else:
            parts += [rewards, decisions, [call]]
            rewards, decisions = [], []
    return [part for part in [*parts, rewards, decisions] if part]


def hand_out(replies: list[Reply]) -> None:
    for call, reply in replies:
        if call.answer.done():  # its caller has gone
            continue
        if isinstance(reply, Exception):
            call.answer.set_exception(reply)
        else:
            call.answer.set_result(reply)
