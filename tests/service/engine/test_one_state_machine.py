"""The same story, told to an agent and to a live bandit: the same becomes of everything."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandits import Agent, InputError
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.requests import Request
from driftbandits.logs.replay import new_book
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.errors import ApiError
from driftbandits.service.store.records import BanditRow, Event, Found, Lease, LoggedDecision

MESSAGES = {
    "already has the reward": "contradictory",
    "has expired": "expired",
    "there is no decision": "unknown",
}
CODES = {
    "contradictory_reward": "contradictory",
    "expired_decision": "expired",
    "unknown_decision": "unknown",
}
CONFIG = {"arms": ["red", "green"], "policy": "thompson", "window": 10.0, "max_open": 3}


class Decided(NamedTuple):
    """At a time, for an id: is it new?"""

    time: float
    id: str
    is_new: bool


class Rewarded(NamedTuple):
    """At a time, a reward for an id, and what becomes of it."""

    time: float
    id: str
    reward: float
    status: str


STORIES = {
    "rewarded once, and again": [
        Decided(0, "x", True),
        Rewarded(1, "x", 1.0, "learned"),
        Rewarded(2, "x", 1.0, "duplicate"),
        Rewarded(50, "x", 1.0, "duplicate"),
    ],
    "rewarded otherwise": [
        Decided(0, "x", True),
        Rewarded(1, "x", 0.0, "learned"),
        Rewarded(1, "x", 1.0, "contradictory"),
        Rewarded(1, "x", 0.0, "duplicate"),
    ],
    "asked for again, while open and afterwards": [
        Decided(0, "x", True),
        Decided(1, "x", False),
        Rewarded(2, "x", 1.0, "learned"),
        Decided(3, "x", False),
        Decided(30, "x", False),
    ],
    "asked for again when its window is over": [
        Decided(0, "x", True),
        Decided(10, "x", False),
        Rewarded(10, "x", 1.0, "expired"),
    ],
    "too late by nothing": [
        Decided(0, "x", True),
        Rewarded(10, "x", 0.5, "expired"),
        Rewarded(11, "x", 1.0, "expired"),
    ],
    "in time, by a hair": [Decided(0, "x", True), Rewarded(9.999, "x", 1.0, "learned")],
    "never decided": [Rewarded(0, "x", 1.0, "unknown"), Decided(1, "x", True)],
    "out of order": [
        Decided(0, "x", True),
        Decided(1, "y", True),
        Rewarded(2, "y", 1.0, "learned"),
        Rewarded(3, "x", 0.0, "learned"),
    ],
    "a crowd": [
        *(Decided(0, id, True) for id in "abcd"),
        Rewarded(1, "a", 1.0, "expired"),
        Rewarded(1, "b", 1.0, "learned"),
        Decided(2, "a", False),
    ],
    "a clock that goes back": [
        Decided(100, "x", True),
        Decided(50, "y", True),
        Rewarded(61, "y", 1.0, "learned"),
        Rewarded(110, "x", 1.0, "expired"),
    ],
}


class OfAgent:
    def __init__(self, config: dict[str, Any]) -> None:
        self._agent = Agent(**config)

    @property
    def book(self) -> DecisionBook:
        return self._agent._book

    def decide(self, id: str, now: float) -> tuple[str, dict[str, float]]:
        made = self._agent.decide(id=id, now=now)
        return made.arm, made.probabilities

    def reward(self, id: str, reward: float, now: float) -> str:
        try:
            return self._agent.reward(id, reward, now=now)
        except InputError as error:
            return next(status for text, status in MESSAGES.items() if text in str(error))


class OfService:
    """A live bandit whose log is a list."""

    def __init__(self, config: dict[str, Any]) -> None:
        row = BanditRow(1, "shop", config, 0.0, "one", "http://one", True)
        self._live = LiveBandit(row, Lease(1, 1), new_book(config, remember=0), 0)
        self._log: list[Event] = []

    @property
    def book(self) -> DecisionBook:
        return self._live.book

    def decide(self, id: str, now: float) -> tuple[str, dict[str, float]]:
        ((made,),) = self._live.decide([[Request(id=id)]], now, self._find)  # type: ignore[misc]
        self._log += self._live.to_be_written().events
        return made.arm, made.probabilities

    def reward(self, id: str, reward: float, now: float) -> str:
        (status,) = self._live.reward([(id, reward)], now, self._find)
        self._log += self._live.to_be_written().events
        return CODES[status.code] if isinstance(status, ApiError) else status

    def _find(self, _: int, ids: list[str]) -> Found:
        found: Found = {}
        for event in self._log:
            if event.id in ids:
                decision = found[event.id].decision if event.id in found else event
                found[event.id] = LoggedDecision(decision, None if event is decision else event)
        return found


@pytest.mark.parametrize("default", [None, 0.5])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_agent_and_service_agree(story: list[Decided | Rewarded], default: float | None) -> None:
    config = {**CONFIG, "default_reward": default}
    agent, service = OfAgent(config), OfService(config)
    made: dict[str, tuple[str, dict[str, float]]] = {}
    for step in story:
        if isinstance(step, Decided):
            before = agent.book.counts.decisions
            decisions = [face.decide(step.id, step.time) for face in (agent, service)]
            assert decisions[0] == decisions[1] == made.setdefault(step.id, decisions[0])
            assert (agent.book.counts.decisions > before) == step.is_new
        else:
            id, reward, now = step.id, step.reward, step.time
            statuses = [face.reward(id, reward, now) for face in (agent, service)]
            assert statuses == [step.status, step.status]
    assert agent.book.counts == service.book.counts
    assert list(agent.book.open) == list(service.book.open)
    states = [face.book.learner.state() for face in (agent, service)]
    assert all(np.array_equal(array, states[1][path]) for path, array in states[0].items())
