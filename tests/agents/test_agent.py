"""An agent: what it decides, remembers and learns, and what it refuses."""

from typing import Any

import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.agents.agent import Agent, own_id
from driftbandits.agents.requests import Request

ODD_NAMES = [
    " ",
    "a/b",
    "100%",
    "日本",
    "é" * 200,
    '"; drop table',
    "a\u2028b",
    "__class__",
    "state",
]


def shop(**settings: Any) -> Agent:
    """One policy and number of arms, so that its programs are compiled once."""
    return Agent(["red", "green"], **({"policy": "thompson"} | settings))


def same_state(agent: Agent, before: dict[str, np.ndarray]) -> bool:
    after = agent._book.learner.state()
    return all(np.array_equal(after[path], before[path]) for path in before)


def learned(agent: Agent) -> int:
    """Rewards that a Thompson agent has learned."""
    return int(sum(array.sum() for array in agent._book.learner.state().values()))


def test_a_decision_has_its_probabilities() -> None:
    agent = shop()
    decision = agent.decide(now=0)
    assert decision.arm in ("red", "green")
    assert decision.probabilities == pytest.approx({"red": 0.5, "green": 0.5})
    assert decision.probability == decision.probabilities[decision.arm]
    assert (agent.counts.decisions, agent.open) == (1, [decision.id])


def test_an_agent_says_what_it_is() -> None:
    agent = Agent(["a", "b"], policy="ucb(scale=0.3)", seed=1)
    agent.reward(agent.decide().id, 1.0)
    agent.decide()
    wanted = "<Agent ucb(scale=0.3), 2 arms, 2 decisions, 1 rewards, 0 expired>"
    assert repr(agent) == wanted


def test_learns_which_arm_pays() -> None:
    agent = shop()
    for now in range(60):
        decision = agent.decide(now=now)
        assert agent.reward(decision.id, float(decision.arm == "green"), now=now) == "learned"
    assert agent.decide(now=60).probabilities["green"] > 0.9
    assert learned(agent) == 60


def test_the_tracker_is_the_default_and_looks_at_the_context() -> None:
    agent = Agent(["red", "green"], ["age", "hour"], reward_range=(-5, 5))
    assert agent.settings.policy == "tracker"
    rng = np.random.default_rng(0)
    for now in range(80):
        age, hour = rng.normal(size=2)
        decision = agent.decide({"hour": hour, "age": age}, now=now)
        agent.reward(decision.id, age if decision.arm == "red" else -age, now=now)
    assert agent.decide([2, 0], now=80).probabilities["red"] > 0.8
    assert agent.decide(np.array([-2, 0], np.float32), now=80).probabilities["green"] > 0.8


def test_the_seed_decides_everything() -> None:
    made = [[agent.decide(now=0) for _ in range(20)] for agent in (shop(), shop(), shop(seed=1))]
    assert made[0] == made[1]
    assert [d.arm for d in made[0]] != [d.arm for d in made[2]]
    assert not {d.id for d in made[0]} & {d.id for d in made[2]}


def test_the_same_id_is_the_same_decision() -> None:
    agent = Agent(["red", "green"], ["age"], "lin_ts")
    first = agent.decide([1], id="mine", now=0)
    assert agent.decide([5], id="mine", now=1) == first
    assert agent.decide("nonsense", id="mine", now=1) == first, "whatever context is sent"
    agent.reward("mine", 1, now=2)
    assert agent.decide([5], id="mine", now=3) == first
    assert agent.counts.decisions == 1


def test_repeats_inside_one_batch_are_decided_and_learned_once() -> None:
    agent = shop()
    asked = [Request(id="x"), {"id": "y"}, {"id": "x"}, {}]
    made = agent.decide_many(asked, now=0)
    assert made[0] == made[2]
    assert agent.open == ["x", "y", made[3].id]
    assert agent.reward_many([("x", 1), ("y", 0), ("x", 1)], now=0) == [
        "learned", "learned", "duplicate",
    ]  # fmt: skip
    assert learned(agent) == 2


def test_an_id_of_our_own_is_never_one_of_the_callers() -> None:
    agent = shop()
    taken = agent.decide(id=own_id(0, 1), now=0)
    others = [agent.decide(now=0).id for _ in range(3)]
    assert len({taken.id, *others}) == 4 == agent.counts.decisions


def test_a_known_decision_whose_window_ends_in_the_same_call_is_still_given() -> None:
    agent = shop(window=10, remember=0)
    first = agent.decide(id="x", now=0)
    assert agent.decide(id="x", now=100) == first
    assert agent.open == []


def test_only_available_arms_are_chosen() -> None:
    agent = Agent(["a", "b", "c"], policy="thompson")
    for _ in range(10):
        decision = agent.decide(available=["c", "a"], now=0)
        assert decision.arm != "b"
        assert decision.probabilities["b"] == 0


def test_retired_arms_rest_until_they_are_restored() -> None:
    agent = shop()
    late = agent.decide(available=["red"], now=0)
    agent.retire_arm("red")
    agent.retire_arm("red")
    assert agent.retired == ["red"]
    assert {agent.decide(available=["red", "green"], now=0).arm for _ in range(9)} == {"green"}
    assert agent.reward(late.id, 1.0, now=0) == "learned"
    before = agent._book.learner.state()
    agent.restore_arm("red")
    assert agent.retired == []
    assert same_state(agent, before)
    assert agent.decide(now=0).probabilities["red"] > 0.5, "its late reward was good"


def test_a_new_arm_starts_from_the_prior() -> None:
    agent = Agent(["only"], policy="thompson")
    for now in range(8):
        agent.reward(agent.decide(now=now).id, 1, now=now)
    for name in ("b", "c", "d", "e"):
        agent.add_arm(name)
        assert agent._book.arms.slots >= len(agent.arms)
    assert agent.arms == ["only", "b", "c", "d", "e"]
    assert learned(agent) == 8
    probabilities = agent.decide(now=9).probabilities
    assert probabilities["only"] > probabilities["b"] == pytest.approx(probabilities["e"], abs=1e-5)
    assert probabilities["b"] > 0


def test_earlier_decisions_keep_their_probabilities_when_arms_are_added() -> None:
    agent = shop()
    first = agent.decide(id="x", now=0)
    agent.add_arm("blue")
    assert agent.decide(id="x", now=0) == first
    assert list(agent.decide(now=0).probabilities) == ["red", "green", "blue"]


def test_a_window_that_passed_forgets_or_learns_the_default() -> None:
    for default, count in ((None, 0), (0.0, 1)):
        agent = shop(window=10, default_reward=default)
        agent.decide(id="x", now=100)
        assert agent.expire(now=109.9) == []
        assert agent.expire(now=110) == ["x"]
        assert (agent.open, learned(agent)) == ([], count)
        with pytest.raises(InputError, match="decision 'x' has expired: its window passed"):
            agent.reward("x", 1.0, now=111)
        with pytest.raises(InputError, match="decision 'x' has expired"):
            agent.reward("x", 0.0, now=111)


def test_without_a_window_decisions_wait_for_ever() -> None:
    agent = shop()
    agent.decide(id="x", now=0)
    assert agent.expire(now=1e12) == []
    assert agent.reward("x", 1, now=1e12) == "learned"


def test_time_never_goes_back() -> None:
    agent = shop(window=10)
    agent.decide(id="x", now=100)
    agent.decide(id="y", now=50)
    assert agent.expire(now=61) == []
    assert agent.reward("y", 1, now=-5) == "learned"
    assert agent.expire(now=110) == ["x"]


def test_the_oldest_go_when_too_many_wait() -> None:
    agent = shop(max_open=3, default_reward=0.0)
    for number in range(5):
        agent.decide(id=f"d{number}", now=0)
    assert agent.open == ["d2", "d3", "d4"]
    assert (learned(agent), agent.counts.expired) == (2, 2)
    assert agent.reward("d2", 1, now=0) == "learned"
    with pytest.raises(InputError, match=r"decision 'd0' has expired: .* too many"):
        agent.reward("d0", 1, now=0)


def test_only_so_many_answered_decisions_are_remembered() -> None:
    agent = shop(remember=2)
    for number in range(3):
        agent.decide(id=f"d{number}", now=0)
        agent.reward(f"d{number}", 1, now=0)
    assert agent.reward("d1", 1, now=0) == agent.reward("d2", 1, now=0) == "duplicate"
    with pytest.raises(InputError, match="there is no decision with the id 'd0'"):
        agent.reward("d0", 1, now=0)


@pytest.mark.parametrize("reward", [1, 1.0, np.float32(1), np.float64(1), np.int64(1), np.uint8(1)])
def test_rewards_may_be_numbers_of_any_kind(reward: Any) -> None:
    agent = shop()
    agent.decide(id="x", now=0)
    assert agent.reward("x", reward, now=0) == "learned"
    assert agent.reward("x", 1.0, now=0) == "duplicate"
    assert learned(agent) == 1


def test_odd_names_are_names() -> None:
    agent = Agent(ODD_NAMES, policy="thompson")
    for name in ODD_NAMES:
        assert agent.decide(available=[name], id=name, now=0).arm == name
    assert agent.reward_many([(name, 1) for name in ODD_NAMES], now=0) == ["learned"] * 9
    assert agent.decide_many([], now=0) == agent.reward_many([], now=0) == []
