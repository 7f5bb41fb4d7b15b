"""States and checkpoints of an encoder: kept, restored and refused."""

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.agents.fields import number
from driftbandits.agents.schema import Values
from tests.agents.test_encoder import SEQUENCES, encoder, seen
from tests.agents.test_fields import FINITE
from tests.agents.test_schema import schema


@given(SEQUENCES, SEQUENCES)
@settings(deadline=None)
def test_a_loaded_encoder_continues_bit_for_bit(before: list[Values], after: list[Values]) -> None:
    made, loaded = encoder(), encoder()
    for values in before:
        made.see(values)
    loaded.set_state(json.loads(json.dumps(made.state())))
    assert loaded.state() == made.state()
    for values in after:
        assert loaded.see_and_encode(values).tobytes() == made.see_and_encode(values).tobytes()
    assert loaded.state() == made.state()


@given(st.lists(FINITE, min_size=1, max_size=6), st.integers(0, 700))
@settings(deadline=None)
def test_long_states_are_read_back(numbers: list[float], count: int) -> None:
    made, loaded = encoder(x=number()), encoder(x=number())
    seen(made, *(numbers * count)[:count])
    loaded.set_state(json.loads(json.dumps(made.state())))
    assert loaded.state() == made.state()


@given(SEQUENCES, SEQUENCES, SEQUENCES)
@settings(deadline=None)
def test_going_back_restores_everything(
    before: list[Values], undone: list[Values], after: list[Values]
) -> None:
    made, straight = encoder(), encoder()
    for values in before:
        made.see(values)
        straight.see(values)
    checkpoint = made.checkpoint()
    for attempt in (undone, after):
        for values in attempt:
            made.see(values)
        made.go_back(checkpoint)  # more than once
        assert made.state() == straight.state()
    for values in after:
        assert made.see_and_encode(values).tobytes() == straight.see_and_encode(values).tobytes()


def test_a_later_checkpoint_outlives_an_earlier_one() -> None:
    made = seen(encoder(x=number()), *range(250))
    early = made.checkpoint()
    late, kept = seen(made, *range(20)).checkpoint(), made.state()
    made.go_back(early)
    seen(made, 5, 6, 7)
    made.go_back(late)
    assert made.state() == kept


def scaled(**changes: Any) -> dict[str, Any]:
    """A state after three numbers, with some changes."""
    state = seen(encoder(x=number()), 1, 2, 4).state()["x"]
    return {"age": state | changes, "country": ["AT"]}


def long(**changes: Any) -> dict[str, Any]:
    """A state after 258 numbers, with some changes."""
    state = seen(encoder(x=number()), *range(258)).state()["x"]
    return {"age": state | changes, "country": []}


@pytest.mark.parametrize("state", [scaled(), long(), encoder().state()])
def test_right_states_are_taken_over(state: dict[str, Any]) -> None:
    made = encoder()
    made.set_state(copy.deepcopy(state))
    assert made.state() == state
    made.see(schema().check({"age": 3, "country": "DE"}))
    assert made.state() != state


WRONG: list[Any] = [
    None, [], {}, {"age": scaled()["age"]}, scaled() | {"hour": []}, scaled() | {"age": None},
    scaled() | {"age": {"count": 3}}, scaled(more=1),
    scaled(count=2), scaled(count=3.0), scaled(count=True), scaled(count=-1), scaled(count=258),
    scaled(recent=(1.0, 2.0, 4.0)), scaled(recent=[1.0, 2.0]), scaled(recent=[1.0, 2.0, 4]),
    scaled(recent=[1.0, 2.0, "4"]), scaled(recent=[1.0, 2.0, math.nan]),
    scaled(recent=[1.0, 2.0, 2e12]), scaled(recent=[1.0, 2.0, -0.0]), scaled(recent=None),
    scaled(centre=1.25), scaled(spread=1.0), scaled(centre=None), scaled(centre=math.nan),
    scaled(count=0, recent=[]), long(centre=math.nan), long(centre=127), long(spread=0.0),
    long(spread=-1.0), long(spread=math.inf), long(spread=1e-8), long(count=257),
    scaled() | {"country": None}, scaled() | {"country": "AT"}, scaled() | {"country": ("AT",)},
    scaled() | {"country": ["AT", "AT"]}, scaled() | {"country": ["AT", "DE", "FR"]},
    scaled() | {"country": [5]}, scaled() | {"country": [""]}, scaled() | {"country": ["\n"]},
    scaled() | {"country": [["AT"]]}, scaled() | {"country": {"AT": 0}},
]  # fmt: skip


@pytest.mark.parametrize("state", WRONG, ids=lambda state: repr(state)[-40:])
def test_a_state_that_no_encoder_wrote_is_refused_and_changes_nothing(state: Any) -> None:
    made = encoder()
    made.see(schema().check({"age": 31, "country": "IT"}))
    before = made.state()
    with pytest.raises(ValueError, match="the state must be one that an encoder wrote, got"):
        made.set_state(state)
    assert made.state() == before


def test_a_state_shares_nothing_with_its_encoder() -> None:
    made = seen(encoder(x=number()), 1, 2)
    state = made.state()
    other = encoder(x=number())
    other.set_state(state)
    seen(made, 3)
    assert state["x"]["recent"] == other.state()["x"]["recent"] == [1, 2]
