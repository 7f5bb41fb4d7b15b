"""A bandit at work: an agent, the place in its log, and what its page shows.

What is asked of it becomes events for the log and answers, which are given only when the events
are committed. It is built again from its newest snapshot and the events after it.
"""

import logging
import secrets
import time
from builtins import id as identity
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from driftbandits.agents.agent import DUPLICATE, LEARNED, Agent
from driftbandits.agents.file import arrays_of, from_bytes
from driftbandits.agents.requests import Asked, Row
from driftbandits.check import InputError
from driftbandits.service import refusals
from driftbandits.service.messages import MadeDecision
from driftbandits.service.monitor import CAPACITY, Monitor
from driftbandits.service.records import BanditRow, Event, Found, Lease
from driftbandits.service.refusals import Refusal
from driftbandits.service.store import Store

log = logging.getLogger("driftbandits.service")

ARM_CHANGES = {"arm_added": "add_arm", "arm_retired": "retire_arm", "arm_restored": "restore_arm"}
FLOAT = np.dtype("<f4")
MOST_ARMS = 1000
Find = Callable[[int, list[str]], Found]  # in the log of the bandit with that id
Logged = dict[str, tuple[MadeDecision, Event | None]]  # decisions and outcomes, by id


class LiveBandit:
    def __init__(self, row: BanditRow, lease: Lease, agent: Agent, seq: int) -> None:
        self.row, self.lease, self.agent = row, lease, agent
        self.seq = seq  # of the last event that the agent has seen
        self.snapshot_seq = seq
        self.events: list[Event] = []  # not yet committed
        self.monitor = Monitor(len(agent.arms))
        self.lost = False  # another worker has it now
        self.ahead = False  # of its log, for good: what it saw last could not be written
        self.mismatches = 0  # decisions that came out differently when they were made again

    # What is asked of it

    def expire(self, now: float, room: int = 0) -> None:
        """Ends the wait of decisions whose window has passed, or for which there is no room."""
        for id in self.agent.expire(now, room=room):
            self._note("expiry", self.agent.now, id, self.agent.default_reward)

    def decide(
        self, asked: Sequence[Sequence[Asked]], now: float, find: Find
    ) -> list[list[MadeDecision] | Refusal]:
        """Answers several callers, each with all of its decisions or a refusal."""
        found = self._logged(find, [r.id for each in asked for r in each if r.id is not None])
        rows: dict[str, Row] = {}
        ids = [self._prepare(each, rows, found) for each in asked]
        said = [id for each in ids if not isinstance(each, Refusal) for id in each]
        known = {id: logged[0] for id, logged in found.items()}
        known |= {id: MadeDecision(*self.agent.decision(id)) for id in said if self.agent.knows(id)}
        self.expire(now, room=len(rows))  # which may end the wait of those that are asked again
        self.agent.decide_rows(list(rows), list(rows.values()))
        known |= self._note_decisions(rows, now)
        return [each if isinstance(each, Refusal) else [known[id] for id in each] for each in ids]

    def _prepare(
        self, asked: Sequence[Asked], rows: dict[str, Row], found: Logged
    ) -> list[str] | Refusal:
        """The ids of a caller's decisions; new ones go into `rows`, all of them or none."""
        ids: list[str] = []
        new: dict[str, Row] = {}
        fresh, row, knows = new_ids(len(asked)), self.agent.row, self.agent.knows
        try:
            for request in asked:
                id = request.id or next(fresh)
                ids.append(id)
                if not request.id or not (id in new or id in rows or id in found or knows(id)):
                    new[id] = row(request)
        except InputError as error:
            return refusals.bad_value(str(error))
        rows.update(new)
        return ids

    def reward(self, given: list[tuple[str, float]], now: float, find: Find) -> list[str | Refusal]:
        """What became of each reward; those of several callers may come together."""
        self.expire(now)
        found = self._logged(find, [id for id, _ in given])
        new: dict[str, float] = {}
        statuses = [self._judge(id, reward, new, found) for id, reward in given]
        self.agent.close(list(new), list(new.values()))
        for id, reward in new.items():
            self._note("reward", now, id, reward)
        return statuses

    def _judge(self, id: str, reward: float, new: dict[str, float], found: Logged) -> str | Refusal:
        """A reward is taken down as new, known already, or refused."""
        if id not in new and id in self.agent.waiting:
            new[id] = reward
            return LEARNED
        outcome = found[id][1] if id in found else None
        if id not in new and id in found and outcome is None:
            self.lost = True  # it waits at another worker
            return refusals.moving()
        if id not in new and outcome is None:
            return refusals.unknown_decision(id)
        if outcome is not None and outcome.kind == "expiry":
            return refusals.expired_decision(id)
        before = new[id] if outcome is None else outcome.reward
        if before != reward:
            return refusals.contradictory_reward(id, before, reward)
        return DUPLICATE

    def must_grow_for(self, name: str) -> bool:
        arms = self.agent.arms
        return self.agent.is_full and name not in arms and len(arms) < MOST_ARMS

    def change_arm(self, kind: str, name: str, now: float) -> None:
        if kind == "arm_added" and len(self.agent.arms) >= MOST_ARMS:
            raise refusals.bad_value(f"arms must be at most {MOST_ARMS}, retired ones too")
        try:
            getattr(self.agent, ARM_CHANGES[kind])(name)
        except InputError as error:
            if kind == "arm_added" and name in self.agent.arms:
                raise refusals.existing_name("an arm", name) from None
            raise refusals.bad_value(str(error)) from None
        self._note(kind, now, name)

    def _logged(self, find: Find, ids: list[str]) -> Logged:
        """Decisions that no longer wait, and what became of them."""
        asked = [id for id in ids if id not in self.agent.waiting]
        if not asked:
            return {}
        found = self._with_noted(find(self.row.id, asked), set(asked))
        return {
            id: (self._decision(decision), outcome)
            for id, (decision, outcome) in found.items()
            if decision is not None
        }

    def _with_noted(self, found: Found, asked: set[str]) -> Found:
        """And with what was noted since, of the same callers' group."""
        found = dict(found)
        for event in self.events:
            if event.id in asked and event.kind not in ARM_CHANGES:
                decision, outcome = found.get(event.id, (None, None))
                decided = event.kind == "decision"
                found[event.id] = (event, outcome) if decided else (decision, event)
        return found

    def _decision(self, event: Event) -> MadeDecision:
        law = np.frombuffer(event.law or b"", FLOAT).tolist()
        arms, arm = self.agent.arms, event.arm or 0
        return MadeDecision(event.id, arms[arm], law[arm], dict(zip(arms, law, strict=False)))

    # Its log

    def _note(self, kind: str, now: float, id: str, reward: float | None = None) -> None:
        seq = self.seq + len(self.events) + 1
        self.events.append(Event(seq, kind, now, id, None, None, None, None, None, reward))

    def _note_decisions(self, rows: dict[str, Row], now: float) -> dict[str, MadeDecision]:
        """What was decided, as it is told; laws and masks are often the same for many."""
        waiting, names, made = self.agent.waiting, self.agent.arms, {}
        seq = self.seq + len(self.events)
        masks: dict[int, bytes] = {}
        laws: dict[int, tuple[bytes, dict[str, float]]] = {}
        for id, (context, available) in rows.items():
            seq += 1
            arm, law, *_ = waiting[id]
            mask = masks.get(identity(available))
            if mask is None:
                mask = masks[identity(available)] = available[: len(names)].tobytes()
            if identity(law) not in laws:
                laws[identity(law)] = law.tobytes(), dict(zip(names, law.tolist(), strict=True))
            told, chances = laws[identity(law)]
            written = context.astype(FLOAT).tobytes() if context.size else b""
            name = names[arm]
            made[id] = MadeDecision(id, name, chances[name], chances)
            event = Event(seq, "decision", now, id, arm, chances[name], told, written, mask)
            self.events.append(event)
        return made

    def to_be_written(self) -> tuple[int, list[Event]]:
        """What was noted, and after which event; it counts as written from now on."""
        last, events = self.seq, self.events
        self.seq, self.events = last + len(events), []
        return last, events

    def watch(self, events: list[Event]) -> None:
        for kind, now, group in runs(events):
            ids = [event.id for event in group]
            if kind == "decision":
                laws = laws_of([event.law or b"" for event in group])
                arms = np.array([event.arm for event in group])
                self.monitor.decided_many(ids, now, arms, laws)
            elif kind == "reward":
                rewards = np.array([event.reward for event in group])
                self.monitor.answered_many(ids, now, rewards)
            elif kind == "expiry":
                self.monitor.expired_many(ids, now)

    def replay(self, events: list[Event]) -> None:
        """Goes through logged events, to the state that the agent had after them."""
        for kind, now, group in runs(events):
            ids = [event.id for event in group]
            self.agent.set_clock(now)
            if kind == "decision":
                self.agent.decide_rows(ids, [self._row(event) for event in group])
                for event in group:
                    self._compare(event)
            elif kind == "reward":
                self.agent.close(ids, [event.reward or 0.0 for event in group])
            elif kind == "expiry":
                self.agent.close(ids)
            else:
                for event in group:
                    getattr(self.agent, ARM_CHANGES[kind])(event.id)
        self.seq += len(events)

    def _compare(self, event: Event) -> None:
        """What was said stands, also where another kind of machine would decide otherwise."""
        made = self.agent.waiting[event.id]
        if made.arm != event.arm:
            law = np.frombuffer(event.law or b"", FLOAT).copy()
            self.agent.waiting[event.id] = made._replace(arm=event.arm or 0, law=law)
            self.mismatches += 1

    def _row(self, event: Event) -> Row:
        available = np.zeros(self.agent.slots, bool)
        told = np.frombuffer(event.available or b"", bool)
        available[: told.size] = told
        return Row(np.frombuffer(event.context or b"", FLOAT), available)

    def snapshot(self) -> tuple[int, dict[str, np.ndarray]]:
        """The agent as it is after its last event, which must be in the log, as copies."""
        assert not self.events, "a snapshot holds committed events only"
        return self.seq, arrays_of(self.agent)


def laws_of(written: list[bytes]) -> np.ndarray:
    """(decisions, arms) float32; an arm that came later had no chance before."""
    longest = max(map(len, written))
    padded = b"".join(law.ljust(longest, b"\0") for law in written)
    return np.frombuffer(padded, FLOAT).reshape(len(written), -1)


def new_ids(count: int) -> Iterator[str]:
    """In the order of time, so that an index grows at its end; then 60 random bits each."""
    moment, digits = f"{time.time_ns() // 1000:013x}", secrets.token_hex(8 * count)
    return (moment + digits[first : first + 15] for first in range(0, 16 * count, 16))


def runs(events: list[Event]) -> Iterator[tuple[str, float, list[Event]]]:
    """Neighbours of one kind and one time."""
    for (kind, now), group in groupby(events, attrgetter("kind", "time")):
        yield kind, now, list(group)


def revive(store: Store, row: BanditRow, lease: Lease) -> LiveBandit:
    """A bandit from its newest snapshot that is whole and the log after it."""
    live = LiveBandit(row, lease, *newest_agent(store, row))
    while events := store.events(row.id, live.seq):
        live.replay(events)
    fill(live, store)
    return live


def newest_agent(store: Store, row: BanditRow) -> tuple[Agent, int]:
    for age in (0, 1):
        kept = store.read_snapshot(row.id, age)
        if kept:
            try:
                return from_bytes(kept[1]), kept[0]
            except InputError as error:  # the log has it all, too
                log.warning("a snapshot of %r is not used: %s", row.name, error)
    return new_agent(row.config), 0


def new_agent(config: dict[str, Any]) -> Agent:
    return Agent(**config, remember=0)


def fill(live: LiveBandit, store: Store) -> None:
    """The newest decisions and what became of them, for the page."""
    told = store.last_decisions(live.row.id, CAPACITY)
    outcomes = [outcome for _, outcome in told if outcome]
    past = sorted([decision for decision, _ in told] + outcomes, key=lambda event: event.seq)
    live.watch(past)
    agent, monitor = live.agent, live.monitor
    monitor.decisions, monitor.rewards = agent.decisions, agent.rewards
    monitor.expired = agent.expired
