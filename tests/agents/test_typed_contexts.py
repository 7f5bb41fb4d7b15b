"""Agents with typed contexts: what the policy sees, and what a refusal leaves as it was."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandits import InputError, category, cyclic, flag, number
from driftbandits.agents.agent import Agent
from driftbandits.agents.encoder import Encoder
from driftbandits.agents.file import to_bytes
from driftbandits.agents.learner import DivergenceError, Learner
from driftbandits.agents.schema import schema_of

FIELDS = {
    "age": number(), "share": number(low=0, high=1), "country": category(buckets=4),
    "hour": cyclic(24), "new": flag(required=True),
}  # fmt: skip
COUNTRIES = ["AT", "DE", "FR", "PL", None]


def visits(**settings: Any) -> Agent:
    """One policy and number of arms, so that its programs are compiled once."""
    return Agent(["a", "b"], FIELDS, **({"policy": "lin_ts", "seed": 3} | settings))


def visit(step: int) -> dict[str, Any]:
    rng = np.random.default_rng(step)
    context = {
        "age": rng.normal() * 30, "share": rng.random(), "hour": step % 24,
        "country": COUNTRIES[rng.integers(len(COUNTRIES))], "new": bool(step % 2),
    }  # fmt: skip
    return {name: value for name, value in context.items() if name == "new" or rng.random() < 0.8}


def reward_of(decision: Any, step: int) -> tuple[str, float]:
    return decision.id, (step + len(decision.arm)) % 3 / 2


def play(agent: Agent, first: int, last: int) -> list[Any]:
    made = []
    for step in range(first, last):
        decision = agent.decide(visit(step), now=step)
        agent.reward(*reward_of(decision, step), now=step)
        made.append(decision)
    return made


def same(one: Agent, other: Agent) -> bool:
    """Whether both are in the same state, and go on in the same way."""
    if to_bytes(one._book) != to_bytes(other._book):
        return False
    return play(one, 100, 105) == play(other, 100, 105)


def test_the_policy_sees_the_encoded_rows() -> None:
    schema = schema_of("context", FIELDS)
    encoder = Encoder(schema)
    agent = visits()
    columns = [f"x{place}" for place in range(schema.width)]
    plain = Agent(["a", "b"], columns, "lin_ts", 3)
    for step in range(60):
        row = encoder.see_and_encode(schema.check(visit(step)))
        typed, known = agent.decide(visit(step), now=step), plain.decide(row, now=step)
        assert (typed.arm, typed.probabilities) == (known.arm, known.probabilities)
        agent.reward(*reward_of(typed, step), now=step)
        plain.reward(*reward_of(known, step), now=step)
    assert agent._book.contexts.state() == encoder.state()


@pytest.mark.parametrize("policy", ["lin_ts", "tracker"])
def test_a_batch_decides_as_one_at_a_time(policy: str) -> None:
    many, single = visits(policy=policy), visits(policy=policy)
    contexts = [visit(step) for step in range(20)]
    made = many.decide_many([{"context": each} for each in contexts], now=0)
    assert made == [single.decide(each, now=0) for each in contexts]
    assert same(many, single)


def test_the_same_id_is_seen_once() -> None:
    agent, other = visits(), visits()
    agent.decide_many([{"context": visit(0), "id": "x"}, {"context": visit(1), "id": "x"}], now=0)
    agent.decide(visit(2), id="x", now=0)
    other.decide(visit(0), id="x", now=0)
    assert same(agent, other)


def test_a_file_goes_on_bit_for_bit(tmp_path: Path) -> None:
    agent = visits()
    play(agent, 0, 30)
    agent.save(tmp_path / "visits.agent")
    again = Agent.load(tmp_path / "visits.agent")
    assert again.settings == agent.settings
    assert again.settings.context == {name: str(field) for name, field in FIELDS.items()}
    assert same(agent, again)


def test_texts_are_types_too() -> None:
    texts: Any = {name: str(field) for name, field in FIELDS.items()}
    assert same(visits(), Agent(["a", "b"], texts, "lin_ts", 3))


WRONG: list[tuple[Any, str]] = [
    ({"size": 1, "new": True}, "a name in context must be one of age, share, country, hour, new"),
    ({"age": np.nan, "new": True}, "age in context must be a finite number"),
    ({"age": "31", "new": True}, "age in context must be a finite number"),
    ({"age": True, "new": True}, "age in context must be a finite number"),
    ({"share": 1.5, "new": True}, "share in context must be from 0 to 1"),
    ({"country": 5, "new": True}, "country in context must be a text"),
    ({"country": "\x00", "new": True}, "country in context must be a text"),
    ({"hour": np.inf, "new": True}, "hour in context must be a finite number"),
    ({"new": 1}, "new in context must be true or false, got 1"),
    ({}, "new in context must be given (it is required)"),
    ((), "new in context must be given (it is required)"),
    ([1, 2, 3, 4, 5], "context must be a mapping of names to values"),
    ("age", "context must be a mapping of names to values"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_a_refused_context_changes_nothing(wrong: Any, message: str) -> None:
    agent, other = visits(), visits()
    for each in (agent, other):
        play(each, 0, 3)
    new = {"age": 1e6, "country": "unheard of", "new": True}
    with pytest.raises(InputError, match=re.escape(message)):
        agent.decide_many([{"context": new}, {"context": wrong}], now=3)
    with pytest.raises(InputError, match="available must be"):
        agent.decide(new, available=[], now=3)
    assert same(agent, other)


def test_decisions_that_cannot_be_made_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, other = visits(), visits()
    for each in (agent, other):
        play(each, 0, 3)
    act_once = Learner.act_once
    calls = []

    def fail_at_last(self: Learner, *arguments: Any) -> Any:
        calls.append(self)
        if len(calls) == 3:
            raise DivergenceError("not here")
        return act_once(self, *arguments)

    monkeypatch.setattr(Learner, "act_once", fail_at_last)
    new = {"age": 1e6, "country": "unheard of", "new": True}
    single, slate = {"context": new}, {"context": new, "k": 2}
    with pytest.raises(InputError, match="not here"):
        agent.decide_many([single, slate], now=2)
    assert len(calls) == 3
    monkeypatch.undo()
    assert same(agent, other)


def test_own_arms_of_decisions_that_cannot_be_made_are_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = {"topic": category(buckets=3), "age": number()}
    arms: dict[str, Any] = {"a": {"age": 1}, "b": {"age": 2}, "c": {"topic": "sport"}}
    agent = Agent(arms, policy="lin_ts", features=types)
    before, table = to_bytes(agent._book), agent._book.features.table.tolist()

    def fail(*_: Any) -> None:
        raise DivergenceError("not here")

    monkeypatch.setattr(Learner, "act_once", fail)
    with pytest.raises(InputError, match="not here"):
        agent.decide(arms={"a": {"age": 500, "topic": "arts"}, "b": {"age": 700}}, now=0)
    assert to_bytes(agent._book) == before
    assert agent._book.features.table.tolist() == table


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"age": "numbr"}, "age in context must be"),
        ({"age": "number(low=1)"}, "low and high must be given together"),
        ({"age": "category(buckets=1)"}, "buckets must be"),
        ({"": number()}, "a name in context must be a text"),
        ({"age": 5}, "age in context must be"),
        ({f"c{place}": category(buckets=999) for place in range(2)}, "the width of context"),
    ],
)
def test_a_schema_that_is_none_is_refused(context: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Agent(["a", "b"], context, "lin_ts")


def test_ranges_are_those_of_the_schema() -> None:
    with pytest.raises(InputError, match="context_ranges must be left out, as the context's"):
        visits(context_ranges={"age": (0, 1)})
