"""Probabilities are those of the moment of the decision, whenever they are read."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from driftbandits import Agent
from driftbandits.agents import learner
from driftbandits.agents.open_decisions import RECENT
from driftbandits.agents.probabilities import DeferredProbabilities
from driftbandits.agents.requests import AgentDecision

ARMS = ["a", "b", "c"]


def play(policy: str, *, reads: bool, pairs: int = 20) -> tuple[Agent, list[AgentDecision]]:
    agent = Agent(ARMS, policy=policy)
    made = []
    for n in range(pairs):
        made.append(agent.decide(available=ARMS[: 2 + n % 2], now=0))
        if reads:
            assert made[-1].probability > 0
        agent.reward(made[-1].id, float(made[-1].arm == "b"), now=0)
    return agent, made


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The policy, once for each time that probabilities are computed."""
    found: list[str] = []
    compute = learner.state_probabilities

    def noted(programs, policy, parts, available):  # type: ignore[no-untyped-def]
        found.append(policy)
        return compute(programs, policy, parts, available)

    monkeypatch.setattr(learner, "state_probabilities", noted)
    return found


@pytest.mark.parametrize("policy", ["thompson", "gaussian_thompson", "exp3", "tracker"])
def test_read_late_they_are_the_same(policy: str) -> None:
    (first, at_once), (second, late) = (play(policy, reads=reads) for reads in (True, False))
    first.add_arm("d")
    second.add_arm("d")  # the policy has other programs now
    assert late == at_once
    assert [list(each.probabilities) for each in late] == [ARMS] * len(late)


def test_what_nobody_reads_is_not_computed(computed: list[str]) -> None:
    _, made = play("thompson", reads=False)
    assert not computed
    assert made[3].probabilities["a"] > 0
    assert made[3].probability > 0
    assert computed == ["thompson"]


def test_a_repeated_decision_and_a_file_have_them(tmp_path: Path) -> None:
    agent, made = play("thompson", reads=False)
    waiting = agent.decide(id="waiting", now=0)
    agent.save(tmp_path / "x.agent")
    loaded = Agent.load(tmp_path / "x.agent")
    agent.reward("waiting", 1.0, now=0)
    for decision in [*made, waiting]:
        assert agent.decide(id=decision.id, now=0) == decision
        assert loaded.decide(id=decision.id, now=0) == decision


def test_many_that_wait_are_kept_in_order() -> None:
    agent = Agent(ARMS, policy="thompson")
    ids = [agent.decide(now=n).id for n in range(2 * RECENT + 3)]
    for id in ids[1::2]:
        agent.reward(id, 1.0, now=1000)
    assert agent.open == ids[::2]
    assert len(agent._book.open) == len(ids[::2])


def test_it_shows_what_it_is() -> None:
    decision = Agent(["a", "b"], policy="uniform").decide(id="x", now=0)
    assert repr(decision) == (
        f"AgentDecision(id='x', arm={decision.arm!r}, probabilities={{'a': 0.5, 'b': 0.5}})"
    )
    assert decision != decision.id
    assert len({decision, decision}) == 1


def test_decisions_differ_in_their_slates_and_places() -> None:
    def decision(slate: str | None = "visit", place: int | None = 1) -> AgentDecision:
        return AgentDecision("visit.1", "a", ARMS, np.ones(3) / 3, slate, place)

    assert decision() == decision()
    assert decision() != decision(place=2)
    assert decision() != decision(slate="page")
    assert decision() != decision(slate=None, place=None)


def test_with_a_window_they_are_not_computed_either(computed: list[str]) -> None:
    agent = Agent(ARMS, policy="thompson", window=10)
    for now in range(5):
        agent.reward(agent.decide(now=now).id, 1.0, now=now)
    assert not computed
    agent.decide(id="x", now=5)
    assert agent.expire(now=20) == ["x"]


def test_many_of_one_state_are_computed_once(computed: list[str]) -> None:
    agent = Agent(ARMS, policy="thompson")
    made = [agent.decide(now=0) for _ in range(5)]
    assert len({each.probability for each in made}) <= len(ARMS)
    assert computed == ["thompson"]


def test_a_large_state_does_not_wait_for_a_reader(computed: list[str]) -> None:
    agent = Agent(ARMS, policy="fewa")
    agent.reward(agent.decide(now=0).id, 1.0, now=0)
    assert computed == ["fewa"]
    assert isinstance(next(iter(agent._book.past.values())).source, np.ndarray)


def test_what_fails_while_they_are_computed_loses_no_decision(monkeypatch) -> None:
    agent = Agent(ARMS, policy="thompson")
    ids = [agent.decide(now=0).id for _ in range(3)]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DeferredProbabilities, "get", interrupt)
        with pytest.raises(KeyboardInterrupt):
            agent.save("never")
    assert agent.open == ids


@pytest.mark.parametrize("cached", [False, True])
def test_agents_and_decisions_can_be_copied(cached: bool, tmp_path: Path) -> None:
    agent = Agent(ARMS, policy="thompson", cache=tmp_path if cached else False)
    decision = agent.decide(now=0)
    copied = copy.deepcopy(agent)
    assert copied.decide(now=1) == agent.decide(now=1)
    assert copy.deepcopy(decision) == decision
    assert pickle.loads(pickle.dumps(decision)) == decision
