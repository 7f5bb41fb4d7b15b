"""What an agent refuses: with a text that helps, and without a change."""

import re
from typing import Any

import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.agents.agent import Agent
from tests.agents.test_agent import same_state, shop

NO_REWARDS = [
    float("nan"), float("inf"), -np.inf, np.float32("nan"), "1", None, True, np.bool_(True), 1e39,
    10**400, 1j, [1.0],
]  # fmt: skip


@pytest.mark.parametrize("reward", NO_REWARDS, ids=lambda value: repr(value)[:12])
def test_what_is_no_reward_is_refused_with_the_whole_batch(reward: Any) -> None:
    agent = shop()
    agent.decide_many([{"id": "x"}, {"id": "y"}], now=0)
    before = agent._book.learner.state()
    with pytest.raises(InputError, match="reward must be a finite number, of at most 1e12, got"):
        agent.reward_many([("x", 1.0), ("y", reward)], now=0)
    assert agent.open == ["x", "y"]
    assert same_state(agent, before)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (("y", 0.0), "decision 'y' already has the reward 1.0, got 0.0"),
        (("x", 0.0), "decision 'x' already has the reward 1.0, got 0.0"),
        (("z", 1.0), "there is no decision with the id 'z'"),
        ((5, 1.0), "id must be a text of 1 to 200 characters without control characters, got 5"),
        (([], 1.0), "id must be a text of 1 to 200 characters without control characters, got []"),
    ],
)
def test_a_refused_reward_changes_nothing(second: tuple[Any, float], message: str) -> None:
    agent = shop()
    agent.decide_many([{"id": "x"}, {"id": "y"}], now=0)
    agent.reward("y", 1.0, now=0)
    before = agent._book.learner.state()
    with pytest.raises(InputError, match=re.escape(message)):
        agent.reward_many([("x", 1.0), second], now=0)
    assert agent.open == ["x"]
    assert same_state(agent, before)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"context": [1]}, "context must be 2 numbers (age, hour), got [1]"),
        ({"context": [1, "2"]}, "context must be a list of numbers, got [1, '2']"),
        ({"context": ["1", "2"]}, "context must be a list of numbers, got ['1', '2']"),
        ({"context": [1, None]}, "context must be a list of numbers, got [1, None]"),
        ({"context": [1, True]}, "context must be a list of numbers, got [1, True]"),
        ({"context": {"age": 1, "hour": True}}, "hour in context must be a number (context={"),
        (
            {"context": [1, np.nan]},
            "context must be a list of finite numbers, of at most 1e12, got [1, nan]",
        ),
        (
            {"context": [1, 1e39]},
            "context must be a list of finite numbers, of at most 1e12, got [1, 1e+39]",
        ),
        ({"context": {"age": 1}}, "hour in context must be given, got {'age': 1}"),
        ({}, "context must be 2 numbers (age, hour), got ()"),
        ({"context": [1, 2], "id": ""}, "id must be a text of 1 to 200 characters without"),
        ({"context": [1, 2], "id": 5}, "id must be a text of 1 to 200 characters without"),
        (
            {"contxt": [1, 2]},
            "one of context, available, id, arms, k, got 'contxt'; did you mean 'context'",
        ),
        ([1, 2], "a request must be a mapping or a Request, got [1, 2]"),
        ({"context": [1, 2], "available": "red"}, "available must be a list of names, got 'red'"),
        ({"context": [1, 2], "available": 5}, "available must be a list of names, got 5"),
        (
            {"context": [1, 2], "available": []},
            "a list with at least one arm that is not retired, got []",
        ),
        (
            {"context": [1, 2], "available": ["old"]},
            "at least one arm that is not retired, got ['old']",
        ),
        ({"context": [1, 2], "available": ["rde"]}, "got 'rde'; did you mean 'red'?"),
    ],
)
def test_a_refused_request_changes_nothing(request_: Any, message: str) -> None:
    agent = Agent(["red", "green", "old"], ["age", "hour"], "lin_ts")
    agent.retire_arm("old")
    before = agent._book.learner.state()
    with pytest.raises(InputError, match=re.escape(message)):
        agent.decide_many([{"context": [0, 0]}, request_], now=0)
    assert (agent.counts.decisions, agent.open) == (0, [])
    assert same_state(agent, before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": []}, "arms must be a list of at least one name, got []"),
        ({"arms": "red"}, "arms must be a list of names, got 'red'"),
        ({"arms": ["a", "a"]}, "arms must be a list of different names, got ['a', 'a']"),
        (
            {"arms": ["a\n"]},
            "arms must be a text of 1 to 200 characters without control characters",
        ),
        (
            {"arms": ["\ud800"]},
            "arms must be a text of 1 to 200 characters without control characters",
        ),
        (
            {"arms": ["é" * 201]},
            "arms must be a text of 1 to 200 characters without control characters",
        ),
        ({"context": ["x", "x"]}, "context must be a list of different names"),
        ({"policy": "trakcer"}, "did you mean 'tracker'"),
        ({"policy": "oracle"}, "policy must be one that does not need the true means"),
        ({"policy": None}, "policy must be a name with settings"),
        ({"policy": "swa"}, "horizon must be known to swa (use swa(doubling=true)"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"window": 0}, "window must be a positive number, got 0"),
        ({"window": np.inf}, "window must be a positive number, got inf"),
        (
            {"default_reward": np.nan},
            "default_reward must be a finite number, of at most 1e12, got nan",
        ),
        ({"reward_range": (1, 0)}, "reward_range must be two numbers, the lower first, got (1, 0)"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"max_open": 0}, "max_open must be a whole number of at least 1, got 0"),
        ({"remember": -1}, "remember must be a whole number of at least 0, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Agent(**({"arms": ["red", "green"], "policy": "thompson"} | settings))


def test_arms_that_make_no_sense_are_refused() -> None:
    agent = shop()
    agent.retire_arm("red")
    with pytest.raises(InputError, match=r"a new name \(restore_arm brings back a retired one\)"):
        agent.add_arm("red")
    with pytest.raises(InputError, match="the last active arm cannot be retired, got 'green'"):
        agent.retire_arm("green")
    for change in (agent.retire_arm, agent.restore_arm):
        with pytest.raises(InputError, match="arm must be one of red, green, got 'blue'"):
            change("blue")
    with pytest.raises(InputError, match="arm must be a text of 1 to 200 characters"):
        agent.add_arm("\x00")
    assert (agent.arms, agent.retired) == (["red", "green"], ["red"])


@pytest.mark.parametrize("now", [np.nan, np.inf, "1", True])
def test_what_is_no_time_is_refused(now: Any) -> None:
    agent = shop()
    with pytest.raises(InputError, match="now must be a time in seconds, got"):
        agent.decide(now=now)
    assert agent.counts.decisions == 0
