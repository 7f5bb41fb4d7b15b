"""Messages about bad values: one line, however long the value is."""

from typing import Any

import numpy as np
import pytest

from driftbandits import Agent, Client, InputError, number
from driftbandits.check import LONGEST_SHOWN, shown

LONG = "x" * 10_000
ROOM = LONGEST_SHOWN + 300  # for the rest of a message
AGENT = Agent(["a", "b"], context=["age", "hour"], policy="thompson")
TYPED = Agent({"a": {"size": 1}}, context={"age": number()}, features={"size": number()})
MANY = Agent(["a"], context=[f"x{place}" for place in range(1000)], policy="thompson")


@pytest.mark.parametrize("value", ["x" * (LONGEST_SHOWN - 2), 1.5, None, [1, "a"], {"a": 2}])
def test_a_short_value_is_shown_as_it_is(value: object) -> None:
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LONG, f"'{'x' * (LONGEST_SHOWN - 1)}... (10,002 characters)"),
        ([0] * 1000, f"[{'0, ' * 99}0,... (3,000 characters)"),
        (10**5000, "a very long int"),
        ([10**5000], "a very long list"),
    ],
    ids=["text", "list", "integer", "list of an integer"],
)
def test_a_long_value_is_cut_off(value: object, expected: str) -> None:
    assert shown(value) == expected


@pytest.mark.parametrize(
    "request_",
    [
        {"context": [0.5] * 100_000}, {"context": {LONG: 1}}, {"context": [LONG, 1]},
        {"context": {"age": LONG, "hour": 1}}, {"context": LONG}, {"id": LONG},
        {"context": [10**5000, 1]}, {"available": [LONG]}, {"available": LONG}, {LONG: 1},
        {"k": LONG}, {"k": 10**5000}, {"context": [1, 2], "arms": {LONG: {}}}, {"arms": LONG},
    ],
)  # fmt: skip
def test_an_agent_does_not_repeat_a_long_value(request_: dict[Any, Any]) -> None:
    for agent in (AGENT, TYPED):
        with pytest.raises(InputError) as refusal:
            agent.decide_many([{"context": [1, 2], **request_}])
        assert len(str(refusal.value)) < ROOM


def test_long_features_and_names_are_not_repeated() -> None:
    wrong: list[Any] = [{LONG: 1}, {"size": LONG}, {"size": np.zeros(10_000)}, [1] * 10_000, LONG]
    for features in wrong:
        with pytest.raises(InputError) as refusal:
            TYPED.add_arm("b", features)
        assert len(str(refusal.value)) < ROOM
    for name in (LONG, "a\n" * 5000):
        with pytest.raises(InputError) as refusal:
            TYPED.add_arm(name)
        assert len(str(refusal.value)) < ROOM


def test_the_names_of_a_long_context_are_not_all_listed() -> None:
    with pytest.raises(InputError) as refusal:
        MANY.decide([1.0])
    message = "context must be 1000 numbers (x0, x1, x2 and 997 more), got [1.0]"
    assert str(refusal.value) == message


def test_a_client_does_not_repeat_a_long_name() -> None:
    with Client("http://localhost:1") as client, pytest.raises(InputError) as refusal:
        client.decide("shop", arms={LONG: {LONG: ()}})
    assert len(str(refusal.value)) < ROOM
