"""A bandit at work: its decision book, the place in its log, and what its page shows.

What is asked of it becomes events for the log and answers, which are given only when the events
are committed. The log is its memory of past decisions.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from driftbandits.agents.admission import DecisionBatch, Past
from driftbandits.agents.decision_book import BookCheckpoint, DecisionBook
from driftbandits.agents.learner import DivergenceError
from driftbandits.agents.requests import DecisionRequest, PolicyInput, place_ids
from driftbandits.agents.reward_verdicts import (
    DUPLICATE,
    LEARNED,
    UNKNOWN,
    RewardStatus,
    RewardVerdict,
    reason_against,
    slate_hint,
)
from driftbandits.check import InputError
from driftbandits.logs.corrections import OUTCOMES, Corrections, as_corrected
from driftbandits.logs.events import (
    arm_event,
    past_decision,
    probability_table,
    settings_event,
)
from driftbandits.logs.replay import ARM_CHANGES, grouped
from driftbandits.service import errors
from driftbandits.service.engine.made_decisions import MadeDecision, answered, new_ids, noted
from driftbandits.service.engine.monitor import Monitor
from driftbandits.service.engine.pace import Pace, decision_steps
from driftbandits.service.engine.snapshot_plan import NextSnapshot, SnapshotPlan
from driftbandits.service.errors import ApiError
from driftbandits.service.store.records import (
    BanditRow,
    Entry,
    Event,
    Found,
    Lease,
    LoggedDecision,
)

MOST_ARMS = 1000
Result = TypeVar("Result")
Find = Callable[[int, list[str]], Found]  # in the log of the bandit with that id


class LiveBandit:
    def __init__(self, row: BanditRow, lease: Lease, book: DecisionBook, seq: int) -> None:
        self.row, self.lease, self.book = row, lease, book
        self.seq = seq  # of the last event that the book has seen
        self.snapshot_seq = seq
        self.snapshots = SnapshotPlan()
        self.events: list[Event] = []  # not yet committed
        self.decision_pace, self.reward_pace = Pace(), Pace()
        self.monitor = Monitor(len(book.arms.names))
        self.corrections: Corrections = {}
        self.lost = False  # another worker has it now
        self.ahead = False  # of its log, for good: its last events could not be written

    # Decisions

    def decide(
        self, callers: Sequence[Sequence[DecisionRequest]], now: float, find: Find
    ) -> list[list[MadeDecision] | ApiError]:
        """Answers several callers, each with all of its decisions or an error."""
        return at_once(self.deciding(callers, now, find))

    def deciding(
        self, callers: Sequence[Sequence[DecisionRequest]], now: float, find: Find
    ) -> Generator[None, None, list[list[MadeDecision] | ApiError]]:
        """`decide` step by step; nothing else may be asked of the bandit meanwhile."""
        given = [r for each in callers for r in each if r.id is not None]
        past = self.past(find, [id for r in given for id in place_ids(r.id or "", r.k)])
        batch = DecisionBatch({}, {})
        new = new_ids(sum(map(len, callers)))
        ids = []
        for each in callers:
            ids.append((yield from self._admit(batch, each, new, past)))
        while self.expire_some(now, room=len(batch.new)):
            yield
        try:
            made = yield from self._decide_in_steps(batch.new, now)
        except DivergenceError as error:
            if len(callers) == 1:
                return [errors.bad_value(str(error))]
            found = []
            for each in callers:  # only one of them, perhaps, asks for what cannot be decided
                found += yield from self.deciding([each], now, find)
            return found
        known = batch.known.items()
        made |= {id: answered(self.book.answer(id, decision)) for id, decision in known}
        return [
            each if isinstance(each, ApiError) else answers(made, each, requests)
            for each, requests in zip(ids, callers, strict=True)
        ]

    def _decide_in_steps(
        self, new: dict[str, PolicyInput], now: float
    ) -> Generator[None, None, dict[str, MadeDecision]]:
        """All of them or, with DivergenceError, none."""
        made: dict[str, MadeDecision] = {}
        before: BookCheckpoint | None = None
        of_one_mask = self.book.learner.shares_probabilities
        try:
            for step in decision_steps(new, self.decision_pace, of_one_mask):
                if made:
                    yield
                elif len(step) < len(new):
                    before = self.book.checkpoint()
                begin = time.perf_counter()
                decided = self.book.decide(step)
                found, events = noted(self.book, decided, step, now, self._next_seq)
                made |= found
                self.events += events
                self.decision_pace.learn(len(step), time.perf_counter() - begin)
        except DivergenceError:
            if before:
                self._take_back(made, before)
            raise
        return made

    def _take_back(self, made: Mapping[str, MadeDecision], before: BookCheckpoint) -> None:
        """Takes back the last decisions, which are not in the log yet."""
        self.book.take_back(list(made), before)
        del self.events[len(self.events) - len(made) :]

    def _admit(
        self,
        batch: DecisionBatch,
        requests: Sequence[DecisionRequest],
        new: Iterator[str],
        past: Past,
    ) -> Generator[None, None, list[str] | ApiError]:
        """The ids of one caller's decisions, with new ones where none are given."""
        ids = [request.id or next(new) for request in requests]
        try:
            yield from self.book.admitting(batch, ids, requests, past)
        except InputError as error:
            return errors.bad_value(str(error))
        return ids

    # Rewards

    def reward(
        self, rewards: list[tuple[str, float]], now: float, find: Find
    ) -> list[RewardStatus | ApiError]:
        """Learns rewards of one or several callers; returns what happened to each."""
        self.expire(now)
        batch = self.book.judge(rewards, self.past(find, [id for id, _ in rewards]))
        both = zip(batch.ids, batch.verdicts, strict=True)
        slates = self.slates(find, [id for id, verdict in both if verdict is UNKNOWN])
        batch = self.book.learn(batch)
        self._note("reward", now, batch.new)
        return [
            verdict.status
            if verdict is LEARNED or verdict is DUPLICATE
            else self._refusal(id, reward, verdict, slates)
            for (id, reward), verdict in zip(rewards, batch.verdicts, strict=True)
        ]

    def slates(self, find: Find, ids: list[str]) -> set[str]:
        """Which of these ids, none of which is that of a decision, are slates."""
        if not ids:  # most of the time
            return set()
        firsts = {id: place_ids(id, 1)[0] for id in ids}
        past = self.past(find, list(firsts.values()))
        return {id for id, first in firsts.items() if first in past or first in self.book.open}

    def _refusal(
        self, id: str, reward: float, verdict: RewardVerdict, slates: set[str]
    ) -> ApiError:
        if verdict.status == "elsewhere":
            self.lost = True
            return errors.moving()
        reason = reason_against(id, reward, verdict, self.book.settings)
        if verdict.status in ("out_of_range", "diverging"):
            return errors.bad_value(reason)
        if verdict.status == "contradictory":
            return errors.contradictory_reward(reason)
        if verdict.status == "expired":
            return errors.expired_decision(reason)
        return errors.unknown_decision(reason + slate_hint(id) if id in slates else reason)

    def expire(self, now: float) -> None:
        """Settles decisions whose window has passed."""
        while self.expire_some(now):
            pass

    def expire_some(self, now: float, room: int = 0) -> bool:
        """Settles what fits a step of decisions whose window has passed, or for which there is no
        room; whether there may be more.
        """
        begin, limit = time.perf_counter(), self.reward_pace.size
        ended = self.book.expire(now, room=room, limit=limit)
        if ended:
            default = self.book.settings.default_reward
            self._note("expiry", self.book.now, dict.fromkeys(ended, default))
            self.reward_pace.learn(len(ended), time.perf_counter() - begin)
        return len(ended) == limit

    def past(self, find: Find, ids: list[str]) -> Past:
        """What the log knows of decisions that are not open here."""
        gone = [id for id in ids if id not in self.book.open]
        if not gone:
            return {}
        found = self._with_noted(find(self.row.id, gone), set(gone))
        return {
            id: past_decision(as_corrected(logged, self.corrections))
            for id, logged in found.items()
        }

    def _with_noted(self, found: Found, ids: set[str]) -> Found:
        """Adds what was noted since, for the same group of callers."""
        found = dict(found)
        for event in self.events:
            if event.kind == "decision" and event.id in ids:
                found[event.id] = LoggedDecision(event, None)
            elif event.kind in OUTCOMES and event.id in found:
                found[event.id] = found[event.id]._replace(outcome=event)
        return found

    # Arms

    def must_grow_for(self, name: str) -> bool:
        arms = self.book.arms
        return arms.is_full and name not in arms.names and len(arms.names) < MOST_ARMS

    def check_features(self, features: Any) -> None:
        try:
            self.book.features.check(features)
        except InputError as error:
            raise errors.bad_value(str(error)) from None

    def change_arm(self, kind: str, name: str, now: float, features: Any = None) -> None:
        names = self.book.arms.names
        if kind == "arm_added" and len(names) >= MOST_ARMS:
            raise errors.bad_value(f"arms must be at most {MOST_ARMS}, retired ones too")
        try:
            if kind == "features_set" and self.book.has_features(name, features):
                return
            ARM_CHANGES[kind](self.book, name, features)
        except InputError as error:
            if kind == "arm_added" and name in names:
                raise errors.existing_name("an arm", name) from None
            raise errors.bad_value(str(error)) from None
        stored = None if features is None else self.book.features_json(name)
        self.events.append(arm_event(self._next_seq, kind, now, name, stored))

    # Settings

    def change_settings(self, changes: dict[str, Any], now: float) -> None:
        """Changes settings from now on; the past stays as it is."""
        before = self.book.settings
        try:
            self.book.set_settings(before._replace(**changes))
        except InputError as error:
            raise errors.bad_value(str(error)) from None
        if self.book.settings != before:
            self.events.append(settings_event(self._next_seq, now, changes))

    # Its log

    @property
    def _next_seq(self) -> int:
        return self.seq + len(self.events) + 1

    def _note(self, kind: str, now: float, rewards: Mapping[str, float | None]) -> None:
        """Notes events of one kind, by id with their rewards, if any."""
        self.events += [
            Event(seq, kind, now, id, reward=reward)
            for seq, (id, reward) in enumerate(rewards.items(), self._next_seq)
        ]

    def to_be_written(self, count: int | None = None) -> Entry:
        """Returns noted events, or the first of them, which count as written from now on."""
        events, self.events = self.events[:count], [] if count is None else self.events[count:]
        entry = Entry(self.lease, last_seq=self.seq, events=events)
        self.seq += len(events)
        return entry

    def watch(self, events: list[Event]) -> None:
        """Shows committed events on its page."""
        for group in grouped(events):
            if group.kind == "decision":
                arms = np.array([event.arm for event in group.events])
                table = probability_table(group.events)
                self.monitor.decided_many(group.ids, group.time, arms, table)
            elif group.kind == "reward":
                rewards = np.array([event.reward for event in group.events])
                self.monitor.answered_many(group.ids, group.time, rewards)
            elif group.kind == "expiry":
                self.monitor.expired_many(group.ids, group.time)

    def snapshot(self) -> NextSnapshot:
        """Takes a snapshot of the book after its last event, which must be in the log.

        Where that is too much for one time, the next call goes on.
        """
        assert not self.events, "a snapshot holds committed events only"
        snapshot = self.snapshots.next(self.book, self.seq)
        if snapshot.contents:
            self.snapshot_seq = self.seq
        return snapshot


def answers(
    made: Mapping[str, MadeDecision], ids: list[str], requests: Sequence[DecisionRequest]
) -> list[MadeDecision]:
    """The decisions of one caller, those of a slate one after the other."""
    found: list[MadeDecision] = []
    for id, request in zip(ids, requests, strict=True):
        if request.k is None:
            found.append(made[id])
        else:
            places = enumerate(place_ids(id, request.k), 1)
            found += [made[each].on_slate(id, place) for place, each in places]
    return found


def at_once(steps: Generator[None, None, Result]) -> Result:
    """Runs all steps at once and returns the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
