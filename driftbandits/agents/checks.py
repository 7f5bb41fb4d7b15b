"""Checks of what an agent is given: settings, names, contexts, rewards and times."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from driftbandits import check
from driftbandits.agents.ranges import OUT_OF_RANGE, between
from driftbandits.agents.settings import MOST_OPEN, AgentSettings

Context = Sequence[float] | Mapping[str, float]
Fields = TypeVar("Fields", bound=tuple[Any, ...])
LONGEST_NAME = 200
LISTS = tuple, list
NOTHING = np.zeros(0, np.float32)  # a context of no numbers
LARGEST_NUMBER = (
    1e12  # its square, too, is a number in float32, so that no reward can break a policy
)


def settings(given: AgentSettings) -> AgentSettings:
    """Checks settings and returns them with tuples instead of lists."""
    if not isinstance(given.policy, str):
        check.fail("policy", "a name with settings, as in 'tracker(width=2)'", given.policy)
    names("context", given.context)
    check.positive(noise=given.noise)
    if given.horizon is not None:
        check.integer(horizon=given.horizon)
    if given.window is not None:
        check.positive(window=given.window)
    if given.default_reward is not None:
        reward(given.default_reward, "default_reward")
    check.integer(seed=given.seed, remember=given.remember, at_least=0)
    check.integer(max_open=given.max_open, at_most=MOST_OPEN)
    check.known("out_of_range", given.out_of_range, OUT_OF_RANGE)
    low, high = reward_range = two_numbers("reward_range", given.reward_range)
    default = given.default_reward
    if default is not None and given.out_of_range == "refuse" and not low <= default <= high:
        check.fail("default_reward", f"{between(low, high)} (reward_range)", default)
    return given._replace(
        context=tuple(given.context),
        reward_range=reward_range,
        context_ranges=ranges_by_name(given.context_ranges, given.context),
    )


def ranges_by_name(
    given: Mapping[str, tuple[float, float]], known: Sequence[str]
) -> dict[str, tuple[float, float]]:
    if not isinstance(given, Mapping):
        check.fail("context_ranges", "two numbers for each name, as in {'age': (0, 120)}", given)
    for name in given:
        check.known("a name in context_ranges", name, known)
    return {name: two_numbers(f"the range of {name}", ends) for name, ends in given.items()}


def two_numbers(kind: str, given: object) -> tuple[float, float]:
    ends = list(given) if isinstance(given, list | tuple) else []
    if len(ends) != 2 or not all(map(check.is_number, ends)) or not ends[0] < ends[1]:
        check.fail(kind, "two numbers, the lower first", given)
    return ends[0], ends[1]


def names(kind: str, given: Sequence[str]) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence):
        check.fail(kind, "a list of names", given)
    for each in given:
        name(kind, each)
    if len(set(given)) < len(given):
        check.fail(kind, "a list of different names", list(given))


def name(kind: str, given: object) -> str:
    """Checks a name: text without control characters and without half characters."""
    if not isinstance(given, str) or not is_name(given):
        check.fail(
            kind, f"a text of 1 to {LONGEST_NAME} characters without control characters", given
        )
    return given


def is_name(text: str) -> bool:
    if not 0 < len(text) <= LONGEST_NAME:
        return False
    if text.isprintable():  # most are, and this is quick
        return True
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def arm(given: object, known: Iterable[str]) -> str:
    if not isinstance(given, str) or given not in known:
        check.known("arm", given if isinstance(given, str) else repr(given), list(known))
    assert isinstance(given, str)
    return given


def reward(given: object, kind: str = "reward") -> float:
    usual = type(given) is float  # the question whether it is a Real takes its time
    if (not usual and (not isinstance(given, Real) or isinstance(given, bool))) or not fits(given):
        check.fail(kind, "a finite number, of at most 1e12", given)
    return float(given) + 0.0  # type: ignore[arg-type]  # no negative zero


def fits(number: Any) -> bool:
    try:
        return abs(float(number)) <= LARGEST_NUMBER  # which NaN is not
    except OverflowError:
        return False


def pairs(given: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Checks pairs of ids and rewards."""
    found = []
    for each in given:
        if not isinstance(each, tuple | list) or len(each) != 2:
            check.fail("rewards", "pairs of an id and a reward", each)
        found.append((name("id", each[0]), reward(each[1])))
    return found


def moment(given: object) -> float:
    if not check.is_number(given) or not math.isfinite(float(given)):  # type: ignore[arg-type]
        check.fail("now", "a time in seconds", given)
    return float(given)  # type: ignore[arg-type]


def context_row(given: Context, known: tuple[str, ...]) -> np.ndarray:
    """Returns the numbers of a context in order."""
    if not known and type(given) in LISTS and not given:
        return NOTHING
    values = by_name(given, known) if isinstance(given, Mapping) else given
    if values is None:
        values = ()
    try:
        row = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        check.fail("context", "a list of numbers", given)
    if row.dtype.kind not in "fiub":  # texts of digits too would turn into numbers
        check.fail("context", "a list of numbers", given)
    if row.shape != (len(known),):
        rule = f"{len(known)} numbers ({', '.join(known)})" if known else "left out here"
        check.fail("context", rule, given)
    if row.size and not (np.abs(row) <= LARGEST_NUMBER).all():
        check.fail("context", "a list of finite numbers, of at most 1e12", given)
    return row


def by_name(given: Mapping[str, float], known: tuple[str, ...]) -> list[float]:
    if set(given) != set(known):
        rule = f"numbers for exactly {', '.join(known)}" if known else "left out here"
        check.fail("context", rule, dict(given))
    return [given[each] for each in known]


def request(given: Mapping[str, object], kind: type[Fields]) -> Fields:
    """Makes a request from a mapping with the same names."""
    if not isinstance(given, Mapping):
        check.fail("a request", "a mapping or a Request", given)
    for key in given:
        check.known("a part of a request", key, kind._fields)  # type: ignore[attr-defined]
    return kind(**given)
