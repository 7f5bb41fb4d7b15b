"""The one thread that decides and learns, for all bandits of this worker.

In rounds: it takes everything that has come in since it last looked, lets the bandits answer in
turn, has all of their events committed in one transaction, and only then are the replies sent. So
one flush of the disk serves all callers that came at the same time, and nothing is said that could
be forgotten. A bandit whose turn is over before it is done goes on in the next round.
"""

import asyncio
import logging
import os
import threading
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.engine.background import Background
from driftbandits.service.engine.clock import Clock
from driftbandits.service.engine.commands import (
    Call,
    Command,
    Correct,
    Delete,
    Reply,
    is_quick,
    resolve,
)
from driftbandits.service.engine.committer import Committer, Served
from driftbandits.service.engine.correcting import Rebuilt, correction_of
from driftbandits.service.engine.heartbeat import Heartbeat
from driftbandits.service.engine.inbox import Inbox
from driftbandits.service.engine.lease_keeper import Lost, Orphaned
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import Loaded
from driftbandits.service.engine.turns import Turns, Work
from driftbandits.service.engine.waiting_calls import WaitingCalls
from driftbandits.service.engine.worker import Worker
from driftbandits.service.errors import ApiError
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Found, Lease
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

TICK = 0.5  # seconds between two looks at windows that pass
WORTH_A_THREAD = 100  # events of a group that are written in the background


class Engine:
    """The bandits of this worker, and the thread that they live on."""

    def __init__(self, store: Store, worker: Worker, metrics: Metrics) -> None:
        self.store, self.worker, self.metrics = store, worker.name, metrics
        self.has_others = worker.may_expire
        self.live_bandits: dict[str, LiveBandit] = {}
        self.clock = Clock()
        self._turns = Turns()
        self._waiting = WaitingCalls()
        self._inbox = Inbox()
        self._background = Background(store, worker, metrics, self._inbox.put)
        self._committer = Committer(store, metrics, self._send_replies)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandits-engine")
        self._ticked = 0.0
        self._heart = Heartbeat()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._background.start(self.live_bandits, self.is_well)

    def is_well(self) -> bool:
        """Whether it may keep its bandits."""
        return self._thread.is_alive() and not self._heart.is_stuck()

    def is_moving(self) -> bool:
        """Whether the thread has shown a sign of life lately."""
        return self._thread.is_alive() and not self._heart.is_halted()

    def submit(self, bandit: str, command: Command) -> asyncio.Future[Any]:
        """Submits a command; raises ApiError or OwnedElsewhere. On the event loop's thread."""
        call = Call(bandit, command, self._loop.create_future())
        self._inbox.put(call)
        return call.answer

    def stop_adopting(self) -> None:
        self._background.leases.adopts = False

    def stop(self) -> None:
        """Finishes what callers wait for, writes snapshots and releases the bandits."""
        self._stopped.set()
        self._inbox.put(None)
        self._thread.join()
        self._committer.stop()
        self._background.stop(self.live_bandits)

    # The thread

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._heart.beat()
                self._round(self._inbox.collect(0 if self._turns else TICK))
            self._finish()
        except BaseException:
            log.critical("the engine has failed; the log has everything", exc_info=True)
            os._exit(70)  # better than a worker that holds its bandits and answers nobody

    def _is_over(self) -> bool:
        if not self._stopped.is_set() or self._turns or not self._inbox.empty():
            return False
        waiting = [*self._waiting.all(), *self._background.rebuilder.put_off]
        return all(call.answer.done() for call in waiting)

    def _round(self, items: list[Any]) -> None:
        calls = [item for item in items if isinstance(item, Call)]
        try:
            for item in items:
                if isinstance(item, Loaded):
                    calls += self._take_in(item)
                elif isinstance(item, Rebuilt):
                    calls += self._take_in_rebuilt(item)
                elif isinstance(item, Lost):
                    self._drop(item.bandit, item.lease)
                elif isinstance(item, Orphaned) and not self._stopped.is_set():
                    self._revive(item.bandit)
            self._serve([call for call in calls if not call.answer.done()])
        except Exception:
            log.exception("a round failed")
            self._start_afresh(calls)

    def _start_afresh(self, calls: list[Call]) -> None:
        """Drops all bandits, which may be ahead of the log, and refuses their calls."""
        self._committer.finish()  # these are answered when they are written
        self.live_bandits.clear()
        calls = [*calls, *self._turns.clear(), *self._waiting.clear()]
        calls += self._background.rebuilder.forget()
        self._send_replies([Reply(call, errors.internal()) for call in calls])

    def _take_in(self, loaded: Loaded) -> list[Call]:
        """Takes a revived bandit with its calls, or refuses them."""
        if loaded.bandit not in self._waiting:  # any more: a round has failed
            return []
        calls = self._waiting.end(loaded.bandit)
        if isinstance(loaded.live, LiveBandit):
            self.live_bandits[loaded.bandit] = loaded.live
            return calls
        self._send_replies([Reply(call, loaded.live) for call in calls])
        return []

    def _take_in_rebuilt(self, rebuilt: Rebuilt) -> list[Call]:
        """Takes a rebuilt bandit and logs its correction; a refused one changes nothing."""
        first, before, after, correction = rebuilt
        again = self._background.rebuilder.end()
        if not self._waiting.is_first(first.bandit, first):  # any more: a round has failed
            return again
        self._finish()
        if isinstance(after, ApiError):
            self.live_bandits[first.bandit] = before
            self._send_replies([Reply(first, after)])
        else:
            self.live_bandits[first.bandit] = after
            served = Served(after, [Reply(first, correction.result)], after.to_be_written())
            self._committer.write([served], in_background=False)
        return self._waiting.end(first.bandit)[1:] + again

    def _serve(self, calls: list[Call]) -> None:
        if self._committer.is_done() or not all(is_quick(call.command) for call in calls):
            self._finish()
        now = self.clock.now()
        for name, theirs in self._by_bandit(calls, now).items():
            self._begin(name, theirs, now)
        for work in self._turns.take():
            self._advance(work)
        taken = self._turns.taken
        self._commit(taken)
        for work in taken:
            if work.is_done and work.behind:
                self._go_on(work)

    def _by_bandit(self, calls: list[Call], now: float) -> dict[str, list[Call]]:
        """Groups calls by bandit; at every tick also bandits with windows that have passed."""
        found: dict[str, list[Call]] = {}
        for call in calls:
            found.setdefault(call.bandit, []).append(call)
        if self._heart.last - self._ticked > TICK and not self._stopped.is_set():
            self._ticked = self._heart.last
            for name, live in self.live_bandits.items():
                if live.book.has_expired(now):
                    found.setdefault(name, [])
        return found

    def _begin(self, name: str, calls: list[Call], now: float) -> None:
        """Queues calls to be answered in turn."""
        live, work = self.live_bandits.get(name), self._turns.at_work(name)
        if work is not None:
            work.behind += calls
        elif live is not None:
            self._turns.add(Work(live, calls, now, self._find))
        elif calls:
            self._revive(name)
            too_many = self._waiting.add(name, calls)
            self._send_replies([Reply(call, errors.moving()) for call in too_many])

    def _advance(self, work: Work) -> None:
        """Gives a bandit one turn, if this worker still owns it."""
        live = work.live
        if self.live_bandits.get(live.row.name) is not live:
            work.fail(errors.moving())
            return
        work.advance()
        if self._stopped.is_set() and not work.is_done and work.is_forsaken():
            work.fail(errors.stopping())
        if work.has_failed or live.lost:
            self._drop(live.row.name, live.lease)

    def _go_on(self, work: Work) -> None:
        """Continues with the calls that came meanwhile."""
        first, *rest = work.behind
        if isinstance(first.command, Delete | Correct):
            for call in rest:
                self._inbox.put(call)
            work.behind = [first]
            self._finish()
            if isinstance(first.command, Correct):
                self._correct(work.live, first, first.command)
            else:
                self._delete(work.live, first)
        else:
            self._begin(work.live.row.name, work.behind, self.clock.now())
            work.behind = []

    def _revive(self, name: str) -> None:
        if name not in self._waiting and name not in self.live_bandits:
            self._finish()
            self._background.reviver.load_soon(name)
            self._waiting.begin(name)

    def _find(self, bandit: int, ids: list[str]) -> Found:
        """Finds decisions in the log, with everything that was answered before."""
        self._finish()
        return self.store.find(bandit, ids)

    def _commit(self, taken: list[Work]) -> None:
        """Commits all complete events in one transaction, then sends the replies."""
        self._finish()
        group = [work.to_be_committed() for work in taken]
        many = sum(len(each.entry.events) for each in group) >= WORTH_A_THREAD
        more = bool(self._turns) or not self._inbox.empty()
        self._committer.write(group, in_background=many and more)
        for work in taken:
            if work.live.book.learner.lacks_programs:
                self._background.compile_soon(work.live.book.learner)
        due = [work.live for work in taken if self._background.snapshots.is_due(work.live)]
        if due:
            self._finish()
        for live in due:
            if self.live_bandits.get(live.row.name) is live:
                self._background.snapshots.write_soon(live)

    def _finish(self) -> None:
        """Waits until what was answered is in the log."""
        group, lost = self._committer.finish()
        for live, _, entry in group:
            if entry.lease.bandit in lost:
                live.ahead = True
                self._drop(live.row.name, entry.lease)
            else:
                live.watch(entry.events)

    def _correct(self, live: LiveBandit, call: Call, command: Correct) -> None:
        """Has the bandit rebuilt with the right reward; other calls for it wait."""
        name = live.row.name
        if self.live_bandits.get(name) is not live:  # it has failed, and must be revived first
            self._inbox.put(call)
            return
        correction, rebuilder = (
            correction_of(live, *command, self._find),
            self._background.rebuilder,
        )
        if correction.event is None:
            self._send_replies([Reply(call, correction.result)])
        elif rebuilder.is_busy:
            rebuilder.put_off.append(call)
        else:
            rebuilder.rebuild_soon(call, live, correction)
            self._drop(name, live.lease)
            self._waiting.begin(name, [call])

    def _delete(self, live: LiveBandit, call: Call) -> None:
        self._drop(live.row.name, live.lease)
        try:
            done = self.store.delete_bandit(live.lease)
            self._send_replies([Reply(call, None if done else errors.moving())])
            self._background.deleter.wake()
        except SQLAlchemyError as error:
            log.warning("not deleted: %s", first_line(error))
            self._send_replies([Reply(call, errors.no_database())])

    def _send_replies(self, replies: list[Reply]) -> None:
        if replies:
            self._loop.call_soon_threadsafe(resolve, replies)

    def _drop(self, name: str, lease: Lease) -> None:
        """Drops a bandit; the next call for it revives it from the log."""
        live = self.live_bandits.get(name)
        if live is not None and live.lease == lease:
            del self.live_bandits[name]
