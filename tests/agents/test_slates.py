"""Slates: several arms at once, one for each place, drawn from what is left."""

import re
from collections import Counter
from itertools import permutations
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from driftbandits import InputError, category, number
from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.learner import Learner

ARMS = ["a", "b", "c", "d"]
SLATES = 2000


def page(**settings: Any) -> Agent:
    """Some policies and one number of arms, so that its programs are compiled once."""
    return Agent(ARMS, **({"policy": "thompson", "seed": 2} | settings))


def taught(policy: str) -> Agent:
    """An agent that prefers some arms to others."""
    agent = page(policy=policy)
    for step in range(80):
        arm = ARMS[step % 4]
        agent.decide(available=[arm], id=f"t{step}", now=0)
        agent.reward(f"t{step}", float(step % (2 + step % 4) == 0), now=0)
    return agent


def copied(agent: Agent) -> Agent:
    return agent_of(from_bytes(to_bytes(agent._book)))


def without(*gone: str) -> list[str]:
    return [arm for arm in ARMS if arm not in gone]


def test_a_slate_has_an_id_and_its_places_have_theirs() -> None:
    agent = page()
    made = agent.decide(k=3, id="visit", now=0)
    assert [each.id for each in made] == ["visit.1", "visit.2", "visit.3"] == agent.open
    assert [(each.slate, each.place) for each in made] == [("visit", place) for place in (1, 2, 3)]
    assert len({each.arm for each in made}) == 3
    assert agent.counts.decisions == 3
    assert "slate='visit', place=2" in repr(made[1])


def test_a_single_decision_is_on_no_slate() -> None:
    decision = page().decide(now=0)
    assert (decision.slate, decision.place) == (None, None)


def test_a_slate_of_all_arms_has_every_arm() -> None:
    agent = page()
    for _ in range(5):
        made = agent.decide(k=4, now=0)
        assert {each.arm for each in made} == set(ARMS)
        assert made[-1].probability == 1


@pytest.mark.parametrize("policy", ["thompson", "exp3", "tracker"])
def test_each_place_is_drawn_from_what_is_left(policy: str) -> None:
    agent = taught(policy)
    other = copied(agent)
    gone: list[str] = []
    for place, decision in enumerate(agent.decide(k=3, id="s", now=0), 1):
        alone = other.decide(available=without(*gone), id=f"s.{place}", now=0)
        assert (decision.arm, decision.probabilities) == (alone.arm, alone.probabilities)
        assert all(decision.probabilities[arm] == 0 for arm in gone)
        assert sum(decision.probabilities.values()) == pytest.approx(1)
        gone.append(decision.arm)
    assert to_bytes(agent._book) == to_bytes(other._book)


def typed() -> Agent:
    return Agent(ARMS, {"n": number(), "who": category(buckets=3)}, "d_lin_ts", seed=2)


def contexts_seen(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The contexts that policies are handed from now on, one for each decision alone."""
    seen: list[list[float]] = []
    act_once = Learner.act_once

    def noting(self: Learner, context: Any, *arguments: Any) -> Any:
        seen.append(context.tolist())
        return act_once(self, context, *arguments)

    monkeypatch.setattr(Learner, "act_once", noting)
    return seen


@pytest.mark.parametrize("together", [False, True])
def test_all_places_see_the_same_context(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, seen = typed(), contexts_seen(monkeypatch)
    numbers = [5.0, -70.0, 8.0, 1000.0]
    asked: list[dict[str, Any]] = [
        {"context": {"n": n, "who": str(n)}, "id": f"s{n}", "k": 3} for n in numbers
    ]
    if together:
        agent.decide_many(asked, now=0)
    else:
        for each in asked:
            agent.decide(**each, now=0)
    slates = [seen[first : first + 3] for first in range(0, 12, 3)]
    assert len(seen) == 12
    assert all(slate == [slate[0]] * 3 for slate in slates)
    assert agent._book.contexts.state()["n"]["count"] == len(numbers)


def test_a_slate_teaches_scales_as_much_as_a_decision() -> None:
    slates, single = typed(), typed()
    for n in (5.0, -70.0, 8.0, 1000.0):
        slates.decide({"n": n}, k=4, now=0)
        single.decide({"n": n}, now=0)
        assert slates._book.contexts.state() == single._book.contexts.state()


def test_a_longer_slate_teaches_scales_nothing_more() -> None:
    agent = typed()
    agent.decide({"n": 5.0}, k=2, id="s", now=0)
    before = agent._book.contexts.state()
    agent.decide({"n": 900.0}, k=4, id="s", now=0)
    assert agent._book.contexts.state() == before


@pytest.mark.parametrize("policy", ["thompson", "exp3(gamma=0.5)"])
def test_pairs_are_as_frequent_as_their_probabilities_say(policy: str) -> None:
    agent = taught(policy)
    first = agent.decide(now=0).probabilities
    second = {arm: agent.decide(available=without(arm), now=0).probabilities for arm in ARMS}
    slates = agent.decide_many([{"k": 2}] * SLATES, now=0)
    found = Counter((one.arm, two.arm) for one, two in slates)
    assert max(first.values()) > 1.5 * min(first.values()), "which would be no test"
    for one, two in permutations(ARMS, 2):
        chance = first[one] * second[one][two]
        deviation = sqrt(SLATES * chance * (1 - chance))
        assert abs(found[one, two] - SLATES * chance) <= 4 * deviation


def test_the_same_id_is_the_same_slate() -> None:
    agent = page()
    made = agent.decide(k=3, id="s", now=0)
    assert agent.decide(k=3, id="s", now=1) == made
    assert agent.decide(k=2, id="s", now=1) == made[:2]
    agent.reward("s.2", 1, now=1)
    assert agent.decide(k=3, id="s", now=2) == made
    assert agent.counts.decisions == 3
    again = agent.decide(id="s.2", now=2)
    assert (again.arm, again.probabilities) == (made[1].arm, made[1].probabilities)


@pytest.mark.parametrize("rewarded", [False, True])
def test_a_longer_slate_keeps_its_first_places(rewarded: bool) -> None:
    agent = page()
    made = agent.decide(k=2, id="s", now=0)
    if rewarded:
        agent.reward("s.1", 1, now=0)
    longer = agent.decide(k=4, id="s", now=0)
    assert longer[:2] == made
    assert {each.arm for each in longer} == set(ARMS)
    assert agent.counts.decisions == 4


def test_a_slate_may_be_asked_for_twice_at_once() -> None:
    many, single = page(), page()
    asked: list[dict[str, Any]] = [
        {"id": "s", "k": 2}, {"id": "s", "k": 4}, {"id": "t", "k": 1}, {"id": "s", "k": 3},
        {"id": "s.1"}, {"id": "s"},
    ]  # fmt: skip
    made = many.decide_many(asked, now=0)
    assert made[:4] == [made[1][:2], made[1], made[2], made[1][:3]]
    assert made[4].arm == made[1][0].arm
    assert {each.arm for each in made[1]} == set(ARMS)
    assert made == [single.decide(**each, now=0) for each in asked]
    assert to_bytes(many._book) == to_bytes(single._book)


def test_a_place_that_is_asked_for_by_its_own_id_is_on_the_slate() -> None:
    for seed in range(10):
        agent, single = page(seed=seed), page(seed=seed)
        requests: list[dict[str, Any]] = [{"id": "s.2"}, {"id": "s", "k": 4}]
        made = agent.decide_many(requests, now=0)
        assert made == [single.decide(**each, now=0) for each in requests]
        assert len({each.arm for each in made[-1]}) == 4


@pytest.mark.parametrize("first", [{"id": "s.1", "available": ["a"]}, {"id": "s", "k": 1}])
def test_no_slate_has_an_arm_twice(first: dict[str, Any]) -> None:
    agent, batch = page(), page()
    slate = {"id": "s", "k": 2}
    chosen = agent.decide_many([first], now=0)[0]
    arm = (chosen[0] if "k" in first else chosen).arm
    own = {"id": "s.2", "available": [arm]}
    agent.decide(**own, now=0)
    with pytest.raises(InputError, match="id must be another one, as places of this slate"):
        agent.decide(**slate, now=0)
    with pytest.raises(InputError, match="id must be another one, as places of this slate"):
        batch.decide_many([first, own, slate], now=0)
    assert to_bytes(batch._book) == to_bytes(page()._book)


def test_a_refused_caller_leaves_no_trace_on_the_slate_of_another() -> None:
    agent, other = page(), page()
    bad: list[dict[str, Any]] = [{"id": "s", "k": 2}, {"id": "s", "k": 5}]
    with pytest.raises(InputError, match="k must be at most 4"):
        agent.decide_many(bad, now=0)
    assert to_bytes(agent._book) == to_bytes(other._book)


@pytest.mark.parametrize("policy", ["thompson", "exp3", "tracker"])
def test_a_batch_decides_as_one_at_a_time(policy: str) -> None:
    many, single = page(policy=policy), page(policy=policy)
    asked: list[dict[str, Any]] = [
        {}, {}, {"k": 2}, {"available": ["b", "d"], "k": 2}, {}, {"k": 1}, {"k": 4},
    ]  # fmt: skip
    for now in range(3):
        made = many.decide_many(asked, now=now)
        assert made == [single.decide(**each, now=now) for each in asked]
        for agent in (many, single):
            agent.reward(made[2][1].id, 1, now=now)
    assert to_bytes(many._book) == to_bytes(single._book)


def test_every_place_has_its_reward() -> None:
    agent = page()
    one, two, _ = agent.decide(k=3, id="s", now=0)
    assert agent.reward_many([("s.1", 0), ("s.2", 1), ("s.1", 0)], now=0) == [
        "learned", "learned", "duplicate",
    ]  # fmt: skip
    assert agent.open == ["s.3"]
    with pytest.raises(InputError, match=r"decision 's.1' already has the reward 0.0"):
        agent.reward("s.1", 1, now=0)
    with pytest.raises(InputError, match=r"id 's'; 's' is a slate, so use the ids of its places"):
        agent.reward("s", 1, now=0)
    probabilities = agent.decide(now=0).probabilities
    assert probabilities[two.arm] > probabilities[one.arm]


def test_places_expire_one_by_one() -> None:
    agent = page(window=10)
    agent.decide(k=2, id="s", now=0)
    agent.reward("s.2", 1, now=5)
    assert agent.expire(now=10) == ["s.1"]
    assert [each.id for each in agent.decide(k=2, id="s", now=11)] == ["s.1", "s.2"]
    assert agent.counts.decisions == 2


def test_retired_arms_and_those_that_are_not_available_are_on_no_slate() -> None:
    agent = page()
    agent.retire_arm("a")
    for _ in range(5):
        assert {each.arm for each in agent.decide(k=3, now=0)} == {"b", "c", "d"}
        made = agent.decide(available=["a", "c", "d"], k=2, now=0)
        assert {each.arm for each in made} == {"c", "d"}


def test_slates_of_own_arms() -> None:
    arms: dict[str, Any] = {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}
    agent = Agent(arms, policy="lin_ts")
    other = copied(agent)
    own: Any = {"a": [5], "c": [1], "new": [2]}
    made = agent.decide(arms=own, k=2, id="s", now=0)
    other.decide(arms=own, id="s.1", now=0)
    left = {arm: each for arm, each in own.items() if arm != made[0].arm}
    assert other.decide(arms=left, id="s.2", now=0).arm == made[1].arm
    assert {each.arm for each in made} <= own.keys()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"k": 5}, "k must be at most 4, the number of arms that are available, got 5"),
        ({"k": 2**31 - 1}, "k must be at most 4, the number of arms that are available, got 2"),
        ({"k": 3, "available": ["a", "b"]}, "k must be at most 2, the number of arms"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": -1}, "k must be a whole number of at least 1, got -1"),
        ({"k": True}, "k must be a whole number of at least 1, got True"),
        ({"k": "2"}, "k must be a whole number of at least 1, got '2'"),
        ({"k": 2.0}, "k must be a whole number of at least 1, got 2.0"),
        ({"k": 2, "id": "x" * 199}, "id must be a text of 1 to 200 characters"),
        ({"k": 2, "id": ""}, "id must be a text of 1 to 200 characters"),
        (
            {"k": 2, "available": []},
            "available must be a list with at least one arm that is not retired",
        ),
        ({"k": 2, "context": [1]}, "context must be left out here, got [1]"),
    ],
)
def test_wrong_slates_change_nothing(request_: dict[str, Any], message: str) -> None:
    agent = page()
    before = to_bytes(agent._book)
    with pytest.raises(InputError, match=re.escape(message)):
        agent.decide(**request_, now=0)
    with pytest.raises(InputError, match=re.escape(message)):
        agent.decide_many([{"k": 2}, request_], now=0)
    assert to_bytes(agent._book) == before
    assert agent.decide(k=2, now=0) == page().decide(k=2, now=0)


def test_a_longer_slate_counts_what_is_left() -> None:
    agent = page()
    agent.decide(k=2, id="s", now=0)
    agent.retire_arm(next(arm for arm in ARMS if arm not in chosen(agent)))
    with pytest.raises(InputError, match="k must be at most 3, the number of arms"):
        agent.decide(k=4, id="s", now=0)
    assert len(agent.decide(k=3, id="s", now=0)) == 3


def chosen(agent: Agent) -> list[str]:
    return [each.arm for each in agent.decide(k=2, id="s", now=0)]


def test_ids_of_200_characters_are_long_enough() -> None:
    made = page().decide(k=2, id="x" * 198, now=0)
    assert [len(each.id) for each in made] == [200, 200]


def test_ids_of_our_own_are_different() -> None:
    agent = page()
    slates = agent.decide_many([{"k": 3}, {}, {"k": 2}, {}], now=0)
    slates += agent.decide_many([{"k": 1}, {}], now=0)
    ids = [each.id for made in slates for each in (made if isinstance(made, list) else [made])]
    assert len(set(ids)) == len(ids) == agent.counts.decisions == 9


def test_there_must_be_room_for_a_slate() -> None:
    agent = page(max_open=2)
    agent.decide(k=2, id="s", now=0)
    with pytest.raises(InputError, match=re.escape("at most 2 (max_open) at a time")):
        agent.decide(k=3, now=0)
    agent.decide(k=2, id="t", now=0)
    assert agent.open == ["t.1", "t.2"]


def test_a_file_goes_on_bit_for_bit(tmp_path: Path) -> None:
    agent = taught("thompson")
    made = agent.decide(k=3, id="s", now=0)
    agent.reward("s.1", 1, now=0)
    agent.save(tmp_path / "page.agent")
    again = Agent.load(tmp_path / "page.agent")
    assert again.decide(k=3, id="s", now=0) == made
    assert again.decide(k=4, id="t", now=0) == agent.decide(k=4, id="t", now=0)


def test_a_refused_slate_adds_no_arms() -> None:
    own = {name: {"x": 1} for name in ("q1", "q2", "q3")}
    refused: list[tuple[list[dict[str, Any]], str]] = [
        ([{"id": "p", "k": 3, "arms": own}], "id must be another one, as places of this slate"),
        ([{"id": "r.1", "arms": own}, {"id": "r.2", "arms": own}, {"id": "r", "k": 2}], "id must"),
        ([{"id": "u", "k": 4, "arms": own}], "k must be at most 3"),
        ([{"id": "v", "arms": own}, {"id": "w", "available": ["nobody"]}], "arm must be one of"),
    ]
    for requests, message in refused:
        agent = Agent({"a": {"x": 1}, "b": {"x": 2}}, policy="lin_ucb", seed=1)
        for id in ("p.1", "p.2"):
            agent.decide(id=id, available=["a"])
        before = to_bytes(agent._book)
        with pytest.raises(InputError, match=message):
            agent.decide_many(requests)
        assert to_bytes(agent._book) == before


def test_a_slate_grows_by_an_arm_that_is_new() -> None:
    knows, learns = (Agent({"a": {"x": 1}, "b": {"x": 2}}, policy="lin_ucb") for _ in range(2))
    knows.add_arm("n", {"x": 3})
    own = {"b": {"x": 2}, "n": {"x": 3}}
    for agent in (knows, learns):
        agent.decide(id="s", k=1, available=["a"])
        slate = agent.decide(id="s", k=3, arms=own)
        assert {each.arm for each in slate} == {"a", "b", "n"}
