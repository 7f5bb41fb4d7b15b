"""Rewards and context numbers out of their ranges are refused, clipped or accepted."""

import re
from typing import Any

import numpy as np
import pytest

from driftbandits import Agent, InputError
from driftbandits.agents.file import from_bytes, to_bytes

ARMS = ["red", "green"]
WIDE = {"context_ranges": {"age": (0, 120)}}
POISONS = [1e3, -1e3, 1e6, -1e6, 1e12, -1e12]


def agent(**settings: Any) -> Agent:
    return Agent(ARMS, policy="ucb", **settings)


def linear(**settings: Any) -> Agent:
    return Agent(ARMS, ["age", "hour"], "lin_ucb", **settings)


def states(*agents: Agent) -> list[dict[str, list]]:
    """Everything that they have learned."""
    found = [each._book.learner.state() for each in agents]
    return [{path: array.tolist() for path, array in state.items()} for state in found]


def rewarded(agent: Agent, *rewards: float) -> Agent:
    for number, reward in enumerate(rewards):
        agent.decide(id=str(number), now=0)
        agent.reward(str(number), reward, now=0)
    return agent


@pytest.mark.parametrize("reward", [*POISONS, 1.0001, -1e-6])
def test_a_reward_out_of_its_range_is_refused_and_changes_nothing(reward: float) -> None:
    shop, same = rewarded(agent(), 0.0, 1.0), rewarded(agent(), 0.0, 1.0)
    for each in (shop, same):
        each.decide(id="next", now=0)
    message = f"reward must be from 0 to 1 (reward_range), got {reward!r}"
    with pytest.raises(InputError, match=re.escape(message)):
        shop.reward("next", reward, now=0)
    assert states(shop) == states(same)
    assert shop.open == ["next"]
    assert shop.reward("next", 1.0, now=0) == "learned"


def test_the_ends_of_a_range_are_in_it() -> None:
    assert rewarded(agent(reward_range=(-2, 3)), -2, 3).counts.rewards == 2


@pytest.mark.parametrize("reward", POISONS)
def test_a_clipped_reward_is_learned_as_the_end_of_its_range(reward: float) -> None:
    clipping = rewarded(agent(out_of_range="clip"), 1.0, reward)
    end = 1.0 if reward > 0 else 0.0
    assert states(clipping) == states(rewarded(agent(), 1.0, end))
    assert clipping.reward("1", reward, now=0) == "duplicate"  # as it was sent, not as learned


def test_an_accepted_reward_is_learned_as_it_is() -> None:
    assert states(rewarded(agent(out_of_range="accept"), 1e6)) != states(rewarded(agent(), 1.0))


def test_a_context_number_out_of_its_range_is_refused() -> None:
    shop = linear(context_ranges={"age": (0, 120)})
    shop.decide([120, -100], now=0)
    with pytest.raises(InputError, match=r"number age must be from 0 to 120 .*, got 121"):
        shop.decide({"age": 121, "hour": 0}, now=0)
    with pytest.raises(InputError, match=r"hour must be from -100 to 100 \(context_ranges\)"):
        shop.decide([0, 1e3], now=0)
    assert shop.counts.decisions == 1


def test_a_clipped_context_number_is_the_end_of_its_range() -> None:
    ranges = {"age": (0, 120)}
    clipping, exact = linear(context_ranges=ranges, out_of_range="clip"), linear(**WIDE)
    for given, end in [([1e12, 5], [120, 5]), ([-3, -1e6], [0, -100])]:
        one, other = clipping.decide(given, now=0), exact.decide(end, now=0)
        assert one == other
        for each, made in ((clipping, one), (exact, other)):
            each.reward(made.id, 1.0, now=0)
    assert states(clipping) == states(exact)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"out_of_range": "ignore"}, "out_of_range must be one of refuse, clip, accept"),
        ({"context_ranges": {"agee": (0, 1)}}, "did you mean 'age'"),
        ({"context_ranges": {"age": (1, 1)}}, "the range of age must be two numbers, the lower"),
        ({"context_ranges": [(0, 1)]}, "context_ranges must be two numbers for each name"),
        ({"default_reward": -1}, "default_reward must be from 0 to 1 (reward_range), got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        linear(**settings)


def test_a_file_keeps_the_ranges_and_an_old_one_accepts_everything() -> None:
    shop = linear(context_ranges={"age": (0, 120)}, out_of_range="clip")
    loaded = from_bytes(to_bytes(shop._book)).settings
    assert (loaded.context_ranges, loaded.out_of_range) == ({"age": (0, 120)}, "clip")


def test_a_reward_that_would_break_the_policy_is_refused_and_changes_nothing() -> None:
    shop = Agent(ARMS, ["x", "y"], "d_lin_ts", out_of_range="accept")
    shop.decide([1, 1], id="before", now=0)
    shop.decide([1e12, 1e12], id="poison", now=0)
    before = states(shop)
    message = "reward must be one that d_lin_ts can learn, got 1.0: with it"
    with pytest.raises(InputError, match=message):
        shop.reward_many([("before", 1.0), ("poison", 1.0)], now=0)
    assert states(shop) == before
    assert shop.open == ["before", "poison"]
    shop.reward("before", 1.0, now=0)
    assert sum(shop.decide([1, 1], now=0).probabilities.values()) == pytest.approx(1)


def test_a_float32_that_was_rounded_to_an_end_is_within() -> None:
    shop = Agent(ARMS, ["x"], "lin_ucb", reward_range=(0, 0.3), context_ranges={"x": (-0.7, 0.3)})
    high, low = np.float32(0.3), np.float32(-0.7)
    assert float(high) > 0.3
    for context in (high, low):
        assert shop.reward(shop.decide([context], now=0).id, high, now=0) == "learned"
    with pytest.raises(InputError, match=r"from 0 to 0\.3"):
        shop.reward(shop.decide([0.0], now=0).id, 0.3001, now=0)
