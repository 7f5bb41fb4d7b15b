"""Every policy as an agent: in batches, saved and loaded, with more arms, with late rewards."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandits import POLICIES, InputError
from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.call_buffers import CallBuffers
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.requests import AgentDecision
from tests.policies.problems import looks_at_context

ARMS = ["a", "b", "c"]
GROUPS = (1, 3, 70, 5)  # decisions at a time; one group needs two calls of a program
TEXTS = ["swa(doubling=true)" if name == "swa" else name for name in POLICIES if name != "oracle"]
TEXTS.append("recurrent(history=true)")

# Policies whose constants depend on the number of arms, so that growth changes their probabilities.
# It does so to m_ucb, bandit_over_bandit and swa too, but not yet after as few rewards as here.
OTHER_CHANCES = {
    "tracker": "an arm's optimism grows with its share in what is known of all arms",
    "glr_ucb": "its share of forced pulls",
    "exp3": "gamma",
    "exp3_s": "gamma",
    "rexp3": "gamma, and the length of its batches",
}
# Those that learn another thing from the same reward when there are more arms.
OTHER_LEARNING = {
    "bandit_over_bandit": "blocks and windows are longer",
    "exp3": "gamma over the number of arms is the step of a weight",
    "exp3_s": "the same",
    "rexp3": "the same",
    "swa(doubling=true)": "its windows are shorter",
}
NEVER_LEARNS = "uniform"


class Played(NamedTuple):
    """An agent that was asked one by one, and one that was asked in groups."""

    text: str
    alone: Agent
    together: Agent
    decisions: list[tuple[AgentDecision, AgentDecision]]
    lost: list[str]  # ids that never had a reward


def new_agent(text: str) -> Agent:
    seen = looks_at_context(text.split("(")[0])
    return Agent(ARMS, ["x", "y"] if seen else [], text, seed=3)


def requests(agent: Agent, rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    """Random contexts; every third or so may only choose between two arms."""
    return [
        {
            "context": rng.normal(size=len(agent.settings.context)),
            "available": ARMS if rng.random() < 0.7 else list(rng.permutation(ARMS)[:2]),
        }
        for _ in range(count)
    ]


def play(text: str) -> Played:
    rng = np.random.default_rng(0)
    alone, together = new_agent(text), new_agent(text)
    decisions, lost = [], []
    for size in GROUPS:
        asked = requests(alone, rng, size)
        single = [alone.decide(**request, now=0) for request in asked]
        decisions += zip(single, together.decide_many(asked, now=0), strict=True)
        order = rng.permutation(size)
        rewarded = order[: -(-size * 3 // 4)]
        lost += [single[i].id for i in range(size) if i not in rewarded]
        rewards = [(single[i].id, float(rng.random() < 0.5)) for i in rewarded]
        assert [alone.reward(*reward, now=0) for reward in rewards] == ["learned"] * len(rewards)
        together.reward_many(rewards, now=0)
    return Played(text, alone, together, decisions, lost)


@pytest.fixture(scope="module", params=TEXTS)
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    yield play(request.param)
    grown_copy.cache_clear()


def copy_of(agent: Agent) -> Agent:
    return agent_of(from_bytes(to_bytes(agent._book)))


@cache
def grown_copy(content: bytes) -> bytes:
    book = from_bytes(content)
    book.add_arm("d")
    return to_bytes(book)


def grown(agent: Agent) -> Agent:
    return agent_of(from_bytes(grown_copy(to_bytes(agent._book))))


def assert_same_state(first: Agent, second: Agent) -> None:
    one, other = first._book.learner.state(), second._book.learner.state()
    assert one.keys() == other.keys()
    for path in one:
        np.testing.assert_array_equal(one[path], other[path], err_msg=path)


def probabilities(decision: AgentDecision) -> list[float]:
    return [decision.probabilities[arm] for arm in ARMS]


def old_part(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What an array of twice the arms holds of those before; a reward may follow the arms."""
    for axis, (size, before) in enumerate(zip(array.shape, shape, strict=True)):
        kept = list(range(min(size, before)))
        if size - before == len(ARMS) < before:
            kept[-1] = size - 1
        array = np.take(array, kept, axis=axis)
    return array


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-4, atol=2e-5)


def depends_on_the_reward(agent: Agent, id: str) -> bool:
    """Whether a good and a bad reward leave different states."""
    lucky, unlucky = copy_of(agent), copy_of(agent)
    lucky.reward(id, 1.0, now=0)
    unlucky.reward(id, 0.0, now=0)
    one, other = lucky._book.learner.state(), unlucky._book.learner.state()
    return any(not np.array_equal(one[path], other[path]) for path in one)


def accepting(agent: Agent) -> Agent:
    """A copy that takes every number."""
    book = from_bytes(to_bytes(agent._book))
    book.settings = book.settings._replace(out_of_range="accept")
    book.ranges = book.ranges._replace(out_of_range="accept")
    return agent_of(book)


def test_no_number_breaks_it(played: Played) -> None:
    """Even if the ranges let it in: it is learned, or refused with nothing changed."""
    agent, names = accepting(played.alone), played.alone.settings.context
    for poison in [size * sign for size in (1e3, 1e6, 1e12) for sign in (1, -1)]:
        for context in (np.ones(len(names)), poison * np.ones(len(names))):
            with suppress(InputError):
                agent.reward(agent.decide(context, now=0).id, poison, now=0)
    state = agent._book.learner.state()
    assert all(np.isfinite(array).all() for array in state.values() if array.dtype.kind == "f")
    for _ in range(3):
        made = agent.decide(np.ones(len(names)), now=0)
        assert sum(made.probabilities.values()) == pytest.approx(1, abs=1e-3)
        assert agent.reward(made.id, 1.0, now=0) == "learned"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_refused_poison_leaves_no_trace(played: Played, is_first: bool) -> None:
    """Of rewards and contexts, before the first reward and after many: bit for bit."""
    agent, same = (new_agent(played.text) if is_first else copy_of(played.alone) for _ in range(2))
    usual = np.ones(len(agent.settings.context))
    for each in (agent, same):
        each.decide(usual, id="next", now=0)
    for poison in [size * sign for size in (1e3, 1e6, 1e12, 3e38) for sign in (1, -1)]:
        with pytest.raises(InputError, match="reward must be"):
            agent.reward("next", poison, now=0)
        if usual.size:
            with pytest.raises(InputError, match="context"):
                agent.decide(poison * usual, now=0)
    assert_same_state(agent, same)
    for each in (agent, same):
        each.reward("next", 1.0, now=0)
    assert_same_state(agent, same)
    assert agent.decide(usual, id="last", now=0) == same.decide(usual, id="last", now=0)


def test_one_by_one_and_in_batches_is_the_same(played: Played) -> None:
    assert all(alone == together for alone, together in played.decisions)
    assert_same_state(played.alone, played.together)


def test_probabilities_sum_to_one_when_rewards_come_out_of_order_or_never(played: Played) -> None:
    assert played.together.open == played.lost
    assert len(played.lost) > 10
    for decision, _ in played.decisions:
        assert sum(decision.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert decision.probability == decision.probabilities[decision.arm] > 0


def test_learns_from_a_reward_that_comes_late(played: Played) -> None:
    found = depends_on_the_reward(played.together, played.lost[0])
    assert found == (played.text != NEVER_LEARNS)


def test_loaded_in_the_middle_it_goes_on_the_same(played: Played) -> None:
    kept, loaded = copy_of(played.together), copy_of(copy_of(played.together))
    assert_same_state(played.together, loaded)
    rng = np.random.default_rng(1)
    for size in (2, 5):
        asked = requests(kept, rng, size)
        made = kept.decide_many(asked, now=0)
        assert loaded.decide_many(asked, now=0) == made
        rewards = [(id, float(rng.random() < 0.5)) for id in [made[0].id, *kept.open[:3]]]
        assert kept.reward_many(rewards, now=0) == loaded.reward_many(rewards, now=0)
    assert kept.open == loaded.open
    assert_same_state(kept, loaded)


def test_more_arms_do_not_change_the_probabilities_of_the_others(played: Played) -> None:
    request = requests(played.alone, np.random.default_rng(2), 1)[0] | {"available": ARMS}
    before = probabilities(copy_of(played.together).decide(**request, now=0))
    after = grown(played.together).decide(**request, now=0)
    assert after.probabilities["d"] == 0
    if played.text in OTHER_CHANCES:
        np.testing.assert_allclose(probabilities(after), before, atol=0.02)
        assert probabilities(after) != before, "no exception any more"
    else:
        np.testing.assert_allclose(probabilities(after), before, atol=1e-6)


def test_open_decisions_are_learned_after_growth_as_before(played: Played) -> None:
    rewards = [(id, 1.0) for id in played.lost]
    usual, more = copy_of(played.together), grown(played.together)
    usual.reward_many(rewards, now=0)
    assert more.reward_many(rewards, now=0) == ["learned"] * len(rewards)
    expected, found = usual._book.learner.state(), more._book.learner.state()
    different = [
        path
        for path, array in expected.items()
        if not close(old_part(found[path], array.shape), array)
    ]
    assert bool(different) == (played.text in OTHER_LEARNING), different


def test_a_new_arm_is_chosen_and_learned(played: Played) -> None:
    agent = grown(played.together)
    rng = np.random.default_rng(3)
    chosen = set()
    for _ in range(60):
        decision = agent.decide(rng.normal(size=len(agent.settings.context)), now=0)
        agent.reward(decision.id, float(decision.arm == "d"), now=0)
        chosen.add(decision.arm)
    assert "d" in chosen
    new = agent.decide(rng.normal(size=len(agent.settings.context)), ["d"], now=0)
    assert (new.arm, new.probability) == ("d", pytest.approx(1))
    assert depends_on_the_reward(agent, new.id) == (played.text != NEVER_LEARNS)


def misplace(buffers: CallBuffers) -> None:
    """To where JAX cannot use it as it is, but copies it."""
    (table,) = buffers.to_learn
    memory = np.zeros(table.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 64 + 16
    misplaced = memory[first : first + table.nbytes].view(np.uint32).reshape(table.shape)
    buffers.to_learn = (misplaced,)
    buffers.set_views()


def test_a_large_ticket_is_read_before_the_next_one_is_written() -> None:
    rng = np.random.default_rng(0)
    alone, together = new_agent("recurrent"), new_agent("recurrent")
    for agent in (alone, together):
        misplace(agent._book.learner._buffers)
    asked = requests(alone, rng, 60)
    rewards = [(decision.id, float(rng.random())) for decision in alone.decide_many(asked, now=0)]
    together.decide_many(asked, now=0)
    together.reward_many(rewards, now=0)
    for reward in rewards:
        alone.reward(*reward, now=0)
    assert_same_state(alone, together)
