"""The one thread that decides and learns, for all bandits of this worker.

It takes everything that has come in since it last looked, lets the bandits answer, has all of
their events committed in one transaction, and only then are the replies sent: so one flush of the
disk serves all callers that came at the same time, and nothing is said that could be forgotten.
"""

import asyncio
import logging
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.engine.answering import answer
from driftbandits.service.engine.commands import (
    Call,
    Command,
    Correct,
    Delete,
    Reply,
    is_quick,
    resolve,
    split_at_last,
)
from driftbandits.service.engine.committer import Committer, Served, refuse_all
from driftbandits.service.engine.lease_keeper import LeaseKeeper, Lost, Orphaned
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import Loaded, Reviver
from driftbandits.service.engine.snapshot_writer import SnapshotWriter
from driftbandits.service.engine.worker import Worker
from driftbandits.service.errors import ApiError
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Found, Lease
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

TICK = 0.5  # seconds between two looks at windows that pass
GROUP = 500  # events in one transaction, about: the next group need not wait for long
WORTH_A_THREAD = 100  # events of a group that are written in the background
SILENCE = 60.0  # seconds without a sign of life after which the thread is taken for stuck


class Engine:
    """The bandits of this worker, and the thread that they live on."""

    def __init__(self, store: Store, worker: Worker, metrics: Metrics) -> None:
        self.store, self.worker, self.metrics = store, worker.name, metrics
        self.live_bandits: dict[str, LiveBandit] = {}
        self._waiting: dict[str, list[Call]] = {}  # for a bandit that is being revived
        self._inbox: queue.SimpleQueue[Call | Loaded | Lost | Orphaned | None]
        self._inbox = queue.SimpleQueue()
        report = self._inbox.put
        self._background = ThreadPoolExecutor(2, "driftbandits-background")
        self._reviver = Reviver(store, worker, metrics, self._background, report)
        self._snapshots = SnapshotWriter(store, metrics, self._background)
        self._leases = LeaseKeeper(store, worker, self._reviver, report)
        self._committer = Committer(store, metrics, self._send_replies)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandits-engine")
        self._ticked = 0.0
        self._beat = time.monotonic()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._leases.start(self.live_bandits, self.is_well)

    def is_well(self) -> bool:
        return self._thread.is_alive() and time.monotonic() - self._beat < SILENCE

    def submit(self, bandit: str, command: Command) -> asyncio.Future[Any]:
        """Its result, or an ApiError, or OwnedElsewhere; on the event loop's thread."""
        call = Call(bandit, command, self._loop.create_future())
        self._inbox.put(call)
        return call.answer

    def stop_adopting(self) -> None:
        self._leases.adopts = False

    def stop(self) -> None:
        """Finishes what was accepted, writes snapshots, gives up the bandits."""
        self._stopped.set()
        self._inbox.put(None)
        self._thread.join()
        self._committer.stop()
        self._leases.stop()
        self._background.shutdown()
        for live in self.live_bandits.values():
            self._snapshots.write_last(live)
        self._leases.release()

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
        waiting = any(self._waiting.values())  # those that are adopted need not come
        return self._stopped.is_set() and self._inbox.empty() and not waiting

    def _round(self, items: list[Any]) -> None:
        calls = [item for item in items if isinstance(item, Call)]
        for item in items:
            if isinstance(item, Loaded):
                calls += self._take_in(item)
            elif isinstance(item, Lost):
                self._drop(item.bandit, item.lease)
            elif isinstance(item, Orphaned) and not self._stopped.is_set():
                self._revive(item.bandit)
        try:
            self._serve([call for call in calls if not call.answer.done()])
        except Exception:
            log.exception("a round failed")
            self.live_bandits.clear()  # they may be ahead of the log, which they are revived from
            self._send_replies([Reply(call, errors.broken_policy(call.bandit)) for call in calls])

    def _collect(self) -> list[Any]:
        """Everything that has come in, after waiting for the first."""
        items: list[Any] = []
        size = 0
        try:
            item = self._inbox.get(timeout=TICK)
            self._let_others_in()
            while True:
                items.append(item)
                size += item.size if isinstance(item, Call) else 1
                if size >= GROUP:
                    break
                item = self._inbox.get_nowait()
        except queue.Empty:
            pass
        return items

    def _let_others_in(self) -> None:
        """Hands over the interpreter while more is coming in: larger groups cost less."""
        before = -1
        while self._inbox.qsize() > before:
            before = self._inbox.qsize()
            time.sleep(0)

    def _take_in(self, loaded: Loaded) -> list[Call]:
        """The calls for a bandit that is here now; where it is not, they are refused."""
        calls = self._waiting.pop(loaded.bandit, [])
        if isinstance(loaded.live, LiveBandit):
            self.live_bandits[loaded.bandit] = loaded.live
            return calls
        self._send_replies([Reply(call, loaded.live) for call in calls])
        return []

    def _serve(self, calls: list[Call]) -> None:
        now = time.time()
        if self._committer.is_done() or not all(is_quick(call.command) for call in calls):
            self._finish()
        served: list[tuple[LiveBandit, list[Reply]]] = []
        ending: list[tuple[LiveBandit, list[Call]]] = []
        for name, theirs in self._by_bandit(calls, now).items():
            live = self.live_bandits.get(name)
            if live is None:
                if theirs:
                    self._revive(name)
                    self._waiting[name] += theirs
                continue
            theirs, rest = split_at_last(theirs)
            served.append((live, self._answer(live, theirs, now)))
            if live.lost:
                self._drop(name, live.lease)
            if rest:
                ending.append((live, rest))
        self._commit(served)
        for live, (first, *rest) in ending:
            self._finish()
            if isinstance(first.command, Correct):
                self._correct(live, first, first.command, now)
            else:
                self._delete(live, first)
            for call in rest:
                self._inbox.put(call)

    def _by_bandit(self, calls: list[Call], now: float) -> dict[str, list[Call]]:
        """At every tick with all bandits of this worker, as windows may have passed."""
        found: dict[str, list[Call]] = {}
        for call in calls:
            found.setdefault(call.bandit, []).append(call)
        if now - self._ticked > TICK:
            self._ticked = now
            for name in self.live_bandits:
                found.setdefault(name, [])
        return found

    def _revive(self, name: str) -> None:
        if name not in self._waiting and name not in self.live_bandits:
            self._finish()
            self._waiting[name] = []
            self._reviver.load_soon(name)

    def _answer(self, live: LiveBandit, calls: list[Call], now: float) -> list[Reply]:
        try:
            return answer(live, calls, now, self._find)
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            failure: Exception = errors.no_database()
        except Exception:
            log.exception("bandit %r failed", live.row.name)
            failure = errors.broken_policy(live.row.name)
        live.events.clear()
        self._drop(live.row.name, live.lease)
        return [Reply(call, failure) for call in calls]

    def _find(self, bandit: int, ids: list[str]) -> Found:
        """In the log, with all that was answered before."""
        self._finish()
        return self.store.find(bandit, ids)

    def _commit(self, served: list[tuple[LiveBandit, list[Reply]]]) -> None:
        """All events in one transaction, and then the replies."""
        self._finish()
        group = [to_be_committed(*each) for each in served]
        many = sum(len(each.entry.events) for each in group) >= WORTH_A_THREAD
        self._committer.write(group, in_background=many and not self._inbox.empty())
        due = [live for live, _ in served if self._snapshots.is_due(live)]
        if due:
            self._finish()
        for live in due:
            if self.live_bandits.get(live.row.name) is live:
                self._snapshots.write_soon(live)

    def _finish(self) -> None:
        """Waits until what was answered is in the log."""
        group, lost = self._committer.finish()
        for live, _, entry in group:
            if entry.lease.bandit in lost:
                live.ahead = True
                self._drop(live.row.name, entry.lease)
            else:
                live.watch(entry.events)

    def _correct(self, live: LiveBandit, call: Call, command: Correct, now: float) -> None:
        """Logs what the reward should have been; then the bandit is rebuilt from its log."""
        try:
            reply = Reply(call, live.correct(*command, now, self._find))
        except ApiError as refusal:
            self._send_replies([Reply(call, refusal)])
            return
        except SQLAlchemyError as error:
            log.warning("not corrected: %s", first_line(error))
            self._send_replies([Reply(call, errors.no_database())])
            return
        is_new = bool(live.events)
        self._commit([(live, [reply])])
        self._finish()
        if not is_new:
            return
        self._drop(live.row.name, live.lease)
        self._revive(live.row.name)

    def _delete(self, live: LiveBandit, call: Call) -> None:
        assert isinstance(call.command, Delete)
        self._drop(live.row.name, live.lease)
        try:
            done = self.store.delete_bandit(live.lease)
            self._send_replies([Reply(call, None if done else errors.moving())])
        except SQLAlchemyError as error:
            log.warning("not deleted: %s", first_line(error))
            self._send_replies([Reply(call, errors.no_database())])

    def _send_replies(self, replies: list[Reply]) -> None:
        if replies:
            self._loop.call_soon_threadsafe(resolve, replies)

    def _drop(self, name: str, lease: Lease) -> None:
        """Forgets a bandit; whoever asks for it next finds it in the log."""
        live = self.live_bandits.get(name)
        if live is not None and live.lease == lease:
            del self.live_bandits[name]


def to_be_committed(live: LiveBandit, replies: list[Reply]) -> Served:
    """What was answered on top of something that is not in the log, is not said."""
    if live.ahead:
        live.events.clear()
        replies = refuse_all(replies, errors.moving())
    return Served(live, replies, live.to_be_written())
