"""Arms with features that are added in mid-run, in every policy that learns from features.

The policy knows what it would know if it had had their slots from the start.
"""

from typing import Any

import numpy as np
import pytest

from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.growth import positions

POLICIES = [
    "lin_ucb",
    "lin_ts",
    "d_lin_ucb",
    "d_lin_ts",
    "sw_lin_ucb",
    "neural_ucb",
    "neural_ts",
    "tracker",
]
SETTINGS = dict.fromkeys(POLICIES[5:7], "(hidden=8, memory=40, train_every=5, batch=8)")
SETTINGS["sw_lin_ucb"] = "(window=20)"
FEATURES = {"a": [1, 0.3], "b": [0, -0.5], "c": [0.5, 0.5]}
NEW: dict[str, Any] = {"d": [1, -0.2], "e": [-0.5, 0.4], "f": [0, 0], "g": [0.2, 0.9]}
CLOSE: Any = {"rtol": 1e-4, "atol": 1e-5}  # sums of another number of terms are rounded otherwise


def new_agent(policy: str, slots: int = 3) -> Agent:
    agent = Agent(FEATURES, ["x"], policy + SETTINGS.get(policy, ""), 3, features=["s", "t"])
    if slots > 3:
        agent._book.widen(slots)
    return agent


def pull(agent: Agent, names: list[str], steps: int, seed: int) -> None:
    """Each arm in turn, whatever the policy would choose; some rewards come later or never."""
    rng = np.random.default_rng(seed)
    for step in range(steps):
        id, context = f"{seed} {step}", rng.uniform(-1, 1, 1)
        agent.decide(context, [names[step % len(names)]], id=id, now=0)
        reward = float(rng.random() < 0.2 + 0.15 * (step % len(names)))
        if step % 7 != 3:
            agent.reward(id, reward, now=0)


def probabilities(agent: Agent, seed: int = 9) -> list[list[float]]:
    """What it would do, of a copy."""
    copy, rng = agent_of(from_bytes(to_bytes(agent._book))), np.random.default_rng(seed)
    made = copy.decide_many([{"context": rng.uniform(-1, 1, 1)} for _ in range(20)], now=0)
    return [list(each.probabilities.values()) for each in made]


def assert_close(one: Agent, other: Agent) -> None:
    mine, others = one._book.learner.state(), other._book.learner.state()
    assert mine.keys() == others.keys()
    for path, array in mine.items():
        np.testing.assert_allclose(array, others[path], **CLOSE, err_msg=path)


def tell_late(agent: Agent) -> None:
    """Rewards of decisions that were open when the policy grew."""
    agent.reward_many([(id, 1.0) for id in agent.open[::2]], now=0)


@pytest.fixture(params=POLICIES)
def both(request: pytest.FixtureRequest) -> tuple[Agent, Agent]:
    """One that grew twice in mid-run, and one that had all twelve slots."""
    grows, had = new_agent(request.param), new_agent(request.param, 12)
    for agent in (grows, had):
        pull(agent, ["a", "b", "c"], 23, seed=1)
        agent.add_arm("d", NEW["d"])
        tell_late(agent)
        pull(agent, ["a", "d"], 12, seed=2)
        for name in ("e", "f", "g"):
            agent.add_arm(name, NEW[name])
        tell_late(agent)
        pull(agent, ["g", "a", "e", "d"], 22, seed=3)
    assert grows._book.arms.slots == had._book.arms.slots == 12
    return grows, had


def test_it_knows_what_it_would_with_the_slots_from_the_start(both: tuple[Agent, Agent]) -> None:
    grows, had = both
    np.testing.assert_array_equal(grows._book.features.table, had._book.features.table)
    assert_close(grows, had)


def test_it_decides_as_it_would_with_the_slots_from_the_start(both: tuple[Agent, Agent]) -> None:
    np.testing.assert_allclose(*map(probabilities, both), atol=1e-3)


@pytest.mark.parametrize("policy", POLICIES)
def test_growth_moves_no_bit_of_what_is_known(policy: str) -> None:
    agent = new_agent(policy)
    pull(agent, ["a", "b", "c"], 23, seed=1)
    before = agent._book.learner.state()
    agent.add_arm("d", NEW["d"])
    after = agent._book.learner.state()
    for path, array in before.items():
        both = list(zip(array.shape, after[path].shape, strict=True))
        kept = np.ix_(*(positions(old, new, 3, 3)[:old] for old, new in both))
        assert after[path][kept].tobytes() == array.tobytes(), path


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_arm_is_judged_by_its_features_at_once(policy: str) -> None:
    agent = new_agent(policy)
    for step in range(150):
        decision = agent.decide([0.5], ["ab"[step % 2]], now=0)
        agent.reward(decision.id, float(decision.arm == "a"), now=0)
    agent.add_arm("like a", FEATURES["a"])
    agent.add_arm("like b", FEATURES["b"])
    asked = [{"context": [0.5], "available": ["like a", "like b"]}] * 40
    mean = np.mean([each.probabilities["like a"] for each in agent.decide_many(asked, now=0)])
    assert mean > 0.6
