"""The kinds of field in a typed context, or in the features of arms: what each accepts.

A field is a value that cannot change. Its text, as in `category(buckets=32)`, is read back by
`field_of`.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import check, choice
from driftbandits.agents import checks
from driftbandits.agents.ranges import between, with_float32

BUCKETS = 32
MOST_BUCKETS = 999  # and one that says whether the value is missing
NUMBERS = float, int


@dataclass(frozen=True, slots=True)
class Number:
    ends: tuple[float, float] | None  # None: scaled by what has been seen
    required: bool

    def labels(self, name: str) -> list[str]:
        return [name]

    def check(self, label: str, value: object) -> float:
        found = _finite(label, value)
        if self.ends is not None and not self.ends[0] <= found <= self.ends[1]:
            _within_float32(label, found, self.ends)
        return found

    def __str__(self) -> str:
        low_high = {} if self.ends is None else dict(zip(("low", "high"), self.ends, strict=True))
        return _text("number", low_high, self.required)


@dataclass(frozen=True, slots=True)
class Category:
    buckets: int  # the columns, of which the last one is shared
    values: tuple[str, ...] | None
    required: bool

    def labels(self, name: str) -> list[str]:
        own = self.values or range(1, self.buckets)
        return [*(f"{name}={each}" for each in own), f"{name} (others)"]

    def check(self, label: str, value: object) -> str:
        return plain_text(checks.name(label, value))

    def __str__(self) -> str:
        values = {"buckets": self.buckets} if self.values is None else {"values": [*self.values]}
        return _text("category", values, self.required)


@dataclass(frozen=True, slots=True)
class Cyclic:
    period: float
    required: bool

    def labels(self, name: str) -> list[str]:
        return [f"{name} (sin)", f"{name} (cos)"]

    def check(self, label: str, value: object) -> float:
        return _finite(label, value)

    def __str__(self) -> str:
        period = int(self.period) if self.period.is_integer() else self.period
        return _text("cyclic", {"period": period}, self.required)


@dataclass(frozen=True, slots=True)
class Flag:
    required: bool

    def labels(self, name: str) -> list[str]:
        return [name]

    def check(self, label: str, value: object) -> bool:
        if value is True or value is False:
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        check.fail(label, "true or false", value)

    def __str__(self) -> str:
        return _text("flag", {}, self.required)


Field = Number | Category | Cyclic | Flag


def number(*, low: float | None = None, high: float | None = None, required: bool = False) -> Field:
    """A number in a context, such as an age or a price.

    With `low` and `high` it must lie between them, and the policy sees it from -1 to 1. Without
    them it is scaled by the median and the spread of the numbers that the agent has seen.

    Args:
        low: The least number that is accepted.
        high: The largest number that is accepted. Give both or neither.
        required: Whether a context without it is refused.

    Example:
        ```python
        from driftbandits import Agent, number

        fields = {"age": number(low=0, high=120), "price": number()}
        agent = Agent(["red", "green"], context=fields, seed=1)
        agent.decide({"age": 31, "price": 9.99})
        agent.decide({"age": 45})  # without a price
        ```
    """
    check.flag(required=required)
    if low is None and high is None:
        return Number(None, required)
    if low is None or high is None:
        check.fail("low and high", "given together or left out together", (low, high))
    ends = _finite("low", low), _finite("high", high)
    if not ends[0] < ends[1]:
        check.fail("low and high", "two numbers, the lower first", (low, high))
    return Number(ends, required)


def category(
    *, buckets: int = BUCKETS, values: Sequence[str] | None = None, required: bool = False
) -> Field:
    """A text in a context that stands for one of several cases, such as a country.

    Each value has a column of its own; those beyond the limit share the last column.

    Args:
        buckets: How many columns, from 2 to 999. The first `buckets - 1` different values that
            the agent sees get their own columns, in order of appearance.
        values: The values with columns of their own, at most 998, in place of those seen first.
        required: Whether a context without it is refused.

    Example:
        ```python
        from driftbandits import Agent, category

        fields = {"country": category(values=["AT", "DE"]), "browser": category(buckets=8)}
        agent = Agent(["red", "green"], context=fields, seed=1)
        agent.decide({"country": "AT", "browser": "firefox"})
        agent.decide({"country": "FR"})  # any country but these two
        ```
    """
    check.integer(at_least=2, at_most=MOST_BUCKETS, buckets=buckets)
    check.flag(required=required)
    if values is None:
        return Category(int(buckets), None, required)
    if buckets != BUCKETS:
        check.fail("buckets", "left out where values are given", buckets)
    checks.names("values", values)
    if not 0 < len(values) < MOST_BUCKETS:
        check.fail("values", f"a list of 1 to {MOST_BUCKETS - 1} names", values)
    return Category(len(values) + 1, tuple(map(plain_text, values)), required)


def cyclic(period: float, *, required: bool = False) -> Field:
    """A number in a context that begins again after a period, such as the hour of the day.

    The policy sees its sine and cosine, so that 23:59 is next to 0:00.

    Args:
        period: The length of a cycle: 24 for hours, 7 for days of the week.
        required: Whether a context without it is refused.

    Example:
        ```python
        from driftbandits import Agent, cyclic

        agent = Agent(["red", "green"], context={"hour": cyclic(24)}, seed=1)
        agent.decide({"hour": 14.5})
        ```
    """
    check.positive(period=period)
    check.flag(required=required)
    return Cyclic(float(period), required)


def flag(*, required: bool = False) -> Field:
    """Something in a context that is either true or false.

    Args:
        required: Whether a context without it is refused.

    Example:
        ```python
        from driftbandits import Agent, flag

        agent = Agent(["red", "green"], context={"new": flag(required=True)}, seed=1)
        agent.decide({"new": True})
        ```
    """
    check.flag(required=required)
    return Flag(required)


FACTORIES: dict[str, Callable[..., Field]] = {
    "number": number, "category": category, "cyclic": cyclic, "flag": flag,
}  # fmt: skip
UNNAMED = {"cyclic": "period"}  # as in Python: cyclic(24)


def field_of(kind: str, given: Field | str) -> Field:
    """The field itself, or the one that a text names; `kind` names it in error messages."""
    if isinstance(given, Field):
        return given
    if not isinstance(given, str):
        check.fail(kind, "a field, as in number() or 'cyclic(period=24)'", given)
    try:
        return _from_text(kind, given)
    except check.InputError as error:  # which may name the setting alone
        message = str(error)
        raise check.InputError(
            message if message.startswith(kind) else f"{kind}: {message}"
        ) from None


def _from_text(kind: str, given: str) -> Field:
    name, settings = choice.parse(kind, given, UNNAMED)
    check.known(kind, name, FACTORIES)
    for setting in settings:
        check.known(f"a setting of {name}", setting, inspect.signature(FACTORIES[name]).parameters)
    if name == "cyclic" and "period" not in settings:
        check.fail(kind, "given a period, as in 'cyclic(period=24)'", given)
    return FACTORIES[name](**settings)


def columns_of(name: str, field: Field) -> list[str]:
    """The labels of a field's columns; the last one says whether the value is missing."""
    return field.labels(name) + ([] if field.required else [f"{name} missing"])


def plain_text(text: str) -> str:
    """The same text, without the class that numpy or an enumeration gave it."""
    return text if type(text) is str else str.__str__(text)


def _text(name: str, settings: dict[str, Any], required: bool) -> str:
    return str(choice.Choice(name, settings | ({"required": True} if required else {})))


def _finite(label: str, value: object) -> float:
    if type(value) in NUMBERS and -checks.LARGEST_NUMBER <= value <= checks.LARGEST_NUMBER:  # type: ignore[operator]
        return value + 0.0  # type: ignore[operator]  # no negative zero
    return checks.reward(value, label)


def _within_float32(label: str, value: float, ends: tuple[float, float]) -> None:
    """A float32 that was rounded to an end of its range is within, as it is elsewhere."""
    low, high = with_float32(np.array([ends]))[0].tolist()
    if not low <= value <= high:
        check.fail(label, between(*ends), value)
