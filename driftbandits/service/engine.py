"""The one thread that decides and learns, for all bandits of this worker.

It takes everything that has come in since it last looked, lets the bandits answer, has all of
their events committed in one transaction, and only then are the answers handed out: so one flush of
the disk serves all callers that came at the same time, and nothing is said that could be forgotten.
"""

import asyncio
import logging
import os
import queue
import threading
import time
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.service import refusals
from driftbandits.service.caretaker import Caretaker, Loaded, Lost, Wake, Worker
from driftbandits.service.committer import Committer, Served
from driftbandits.service.gauges import Gauges
from driftbandits.service.live import LiveBandit
from driftbandits.service.records import Found, Lease
from driftbandits.service.refusals import Refusal, first_line
from driftbandits.service.store import Store
from driftbandits.service.wishes import (
    Call,
    ChangeArm,
    Decide,
    Delete,
    Look,
    Reply,
    Reward,
    Wish,
    hand_out,
    is_quick,
    stretches,
    until_deleted,
)

log = logging.getLogger("driftbandits.service")

TICK = 0.5  # seconds between two looks at windows that pass
TOGETHER = 500  # events in one transaction, about: the next group need not wait for long
ASIDE = 100  # events of a group that are worth another thread
SILENCE = 60.0  # seconds without a sign of life after which the thread is taken for stuck


class Engine:
    """Bandits that this worker looks after, and the thread that they live on."""

    def __init__(self, store: Store, worker: Worker, gauges: Gauges) -> None:
        self.store, self.worker, self.gauges = store, worker.name, gauges
        self.lives: dict[str, LiveBandit] = {}
        self._waiting: dict[str, list[Call]] = {}  # for a bandit that is being revived
        self._inbox: queue.SimpleQueue[Call | Loaded | Lost | Wake | None] = queue.SimpleQueue()
        self._caretaker = Caretaker(store, worker, gauges, self._inbox.put)
        self._committer = Committer(store, gauges, self._hand_out)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandits-engine")
        self._ticked = 0.0
        self._beat = time.monotonic()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._caretaker.start(self.lives, self.is_well)

    def is_well(self) -> bool:
        return self._thread.is_alive() and time.monotonic() - self._beat < SILENCE

    def submit(self, bandit: str, wish: Wish) -> asyncio.Future[Any]:
        """Its answer, or a Refusal, or Elsewhere; on the event loop's thread."""
        call = Call(bandit, wish, self._loop.create_future())
        self._inbox.put(call)
        return call.answer

    def take_in_no_more(self) -> None:
        self._caretaker.takes_in = False

    def stop(self) -> None:
        """Finishes what was accepted, keeps snapshots, gives up the bandits."""
        self._stopped.set()
        self._inbox.put(None)
        self._thread.join()
        self._committer.stop()
        self._caretaker.stop(self.lives)

    # The thread

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._beat = time.monotonic()
                self._round(self._collect())
            self._finish()
        except BaseException:
            log.critical("the engine has failed; the log has everything", exc_info=True)
            os._exit(70)  # better than a worker that holds its bandits and answers nobody

    def _is_over(self) -> bool:
        waiting = any(self._waiting.values())  # those that are woken unasked need not come
        return self._stopped.is_set() and self._inbox.empty() and not waiting

    def _round(self, came: list[Any]) -> None:
        calls = [item for item in came if isinstance(item, Call)]
        for item in came:
            if isinstance(item, Loaded):
                calls += self._settle(item)
            elif isinstance(item, Lost):
                self._drop(item.bandit, item.lease)
            elif isinstance(item, Wake) and not self._stopped.is_set():
                self._wake(item.bandit)
        try:
            self._serve([call for call in calls if not call.answer.done()])
        except Exception:
            log.exception("a round failed")
            self.lives.clear()  # they may be ahead of the log, which they are revived from
            self._hand_out([(call, refusals.broken(call.bandit)) for call in calls])

    def _collect(self) -> list[Any]:
        """Everything that has come in, after waiting for the first."""
        came: list[Any] = []
        size = 0
        try:
            item = self._inbox.get(timeout=TICK)
            self._let_others_in()
            while True:
                came.append(item)
                size += item.size if isinstance(item, Call) else 1
                if size >= TOGETHER:
                    break
                item = self._inbox.get_nowait()
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
        if self._committer.is_done() or not all(is_quick(call.wish) for call in calls):
            self._finish()
        by_bandit: dict[str, list[Call]] = {}
        for call in calls:
            by_bandit.setdefault(call.bandit, []).append(call)
        if now - self._ticked > TICK:
            self._ticked = now
            for name in self.lives:
                by_bandit.setdefault(name, [])
        served: list[tuple[LiveBandit, list[Reply]]] = []
        deleting: list[tuple[LiveBandit, list[Call]]] = []
        for name, theirs in by_bandit.items():
            live = self.lives.get(name)
            if live is None:
                self._revive(name, theirs)
                continue
            theirs, rest = until_deleted(theirs)
            served.append((live, self._answer(live, theirs, now)))
            if live.lost:
                self._drop(name, live.lease)
            if rest:
                deleting.append((live, rest))
        self._commit(served)
        for live, rest in deleting:
            self._finish()
            self._delete(live, rest)

    def _revive(self, name: str, calls: list[Call]) -> None:
        if calls:
            self._wake(name)
            self._waiting[name] += calls

    def _wake(self, name: str) -> None:
        if name not in self._waiting and name not in self.lives:
            self._finish()
            self._waiting[name] = []
            self._caretaker.load(name)

    def _answer(self, live: LiveBandit, calls: list[Call], now: float) -> list[Reply]:
        try:
            live.expire(now)
            now = live.agent.now
            return [
                reply for part in stretches(calls) for reply in self._answer_part(live, part, now)
            ]
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            failure: Exception = refusals.no_database()
        except Exception:
            log.exception("bandit %r failed", live.row.name)
            failure = refusals.broken(live.row.name)
        live.events.clear()
        self._drop(live.row.name, live.lease)
        return [(call, failure) for call in calls]

    def _answer_part(self, live: LiveBandit, calls: list[Call], now: float) -> list[Reply]:
        """Calls of one kind, together."""
        wishes: list[Any] = [call.wish for call in calls]
        if isinstance(wishes[0], Decide):
            asked = [wish.requests for wish in wishes]
            return list(zip(calls, live.decide(asked, now, self._find), strict=True))
        if isinstance(wishes[0], Reward):
            pairs = [pair for wish in wishes for pair in wish.pairs]
            statuses = iter(live.reward(pairs, now, self._find))
            return [
                (call, [next(statuses) for _ in wish.pairs])
                for call, wish in zip(calls, wishes, strict=True)
            ]
        return [(call, self._look(live, call.wish, now)) for call in calls]

    def _find(self, bandit: int, ids: list[str]) -> Found:
        """In the log, with all that was answered before."""
        self._finish()
        return self.store.find(bandit, ids)

    def _look(self, live: LiveBandit, wish: Wish, now: float) -> Any:
        try:
            if isinstance(wish, ChangeArm):
                live.change_arm(wish.kind, wish.name, now)
                return wish.then(live)
            assert isinstance(wish, Look)
            return wish.at(live)
        except Refusal as refusal:
            return refusal

    def _commit(self, served: list[tuple[LiveBandit, list[Reply]]]) -> None:
        """All events in one transaction, and then the answers; aside, if there is more to do."""
        self._finish()
        served = [stopped_short(*each) if each[0].ahead else each for each in served]
        group = [
            Served(live, replies, live.lease, *live.to_be_written()) for live, replies in served
        ]
        many = sum(len(each.events) for each in group) >= ASIDE
        self._committer.write(group, aside=many and not self._inbox.empty())
        due = [live for live, _ in served if self._caretaker.snapshot_is_due(live)]
        if due:
            self._finish()
        for live in due:
            if self.lives.get(live.row.name) is live:
                self._caretaker.keep_snapshot(live)

    def _finish(self) -> None:
        """Waits until what was answered is in the log."""
        group, lost = self._committer.finish()
        for live, _, lease, _, events in group:
            if lease.bandit in lost:
                live.ahead = True
                self._drop(live.row.name, lease)
            else:
                live.watch(events)

    def _delete(self, live: LiveBandit, calls: list[Call]) -> None:
        """The first call's wish; the others ask again, of nobody or of a bandit anew."""
        first, *rest = calls
        assert isinstance(first.wish, Delete)
        self._drop(live.row.name, live.lease)
        try:
            done = self.store.delete_bandit(live.lease)
            self._hand_out([(first, None if done else refusals.moving())])
        except SQLAlchemyError as error:
            log.warning("not deleted: %s", first_line(error))
            self._hand_out([(first, refusals.no_database())])
        for call in rest:
            self._inbox.put(call)

    def _hand_out(self, replies: list[Reply]) -> None:
        if replies:
            self._loop.call_soon_threadsafe(hand_out, replies)

    def _drop(self, name: str, lease: Lease) -> None:
        """Forgets a bandit; whoever asks for it next finds it in the log."""
        live = self.lives.get(name)
        if live is not None and live.lease == lease:
            del self.lives[name]


def stopped_short(live: LiveBandit, replies: list[Reply]) -> tuple[LiveBandit, list[Reply]]:
    """What was answered on top of something that is not in the log, is not said."""
    live.events.clear()
    return live, [(call, refusals.moving()) for call, _ in replies]
