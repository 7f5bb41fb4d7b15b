"""Checks of what an agent is given: names, contexts, rewards and times."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NoReturn, TypeVar

import numpy as np

from driftbandits import check

Context = Sequence[float] | Mapping[str, Any]  # numbers, or values of a schema
Features = Sequence[float] | Mapping[str, Any]  # of an arm
Fields = TypeVar("Fields", bound=tuple[Any, ...])
LONGEST_NAME = 200
LISTS = tuple, list
FLAGS = frozenset({bool, np.bool_})  # which NumPy would take for numbers
NOTHING = np.zeros(0, np.float32)  # a context of no numbers
LARGEST_NUMBER = (
    1e12  # its square, too, is a number in float32, so that no reward can break a policy
)


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


def number_row(kind: str, given: Context | None, known: tuple[str, ...]) -> np.ndarray:
    """Returns the numbers of a context, or of an arm's features, in order."""
    if not known and type(given) in LISTS and not given:
        return NOTHING
    values = by_name(kind, given, known) if isinstance(given, Mapping) else given
    if values is None:
        values = ()
    try:
        row = np.asarray(values)
        is_numbers = row.dtype.kind in "fiu"  # texts of digits too would turn into numbers
        if row.ndim and not hasattr(values, "dtype"):
            is_numbers = is_numbers and FLAGS.isdisjoint(map(type, values))
    except (TypeError, ValueError, OverflowError):
        is_numbers = False
    if not is_numbers:
        fail_numbers(kind, given, known)
    if row.shape != (len(known),):
        names = check.listing(kind, list(known))
        rule = f"{len(known)} numbers ({names})" if known else "left out here"
        check.fail(kind, rule, given)
    if row.size and not (np.abs(row) <= LARGEST_NUMBER).all():
        check.fail(kind, "a list of finite numbers, of at most 1e12", given)
    return row


def by_name(kind: str, given: Mapping[str, Any], known: tuple[str, ...]) -> list[float]:
    if not known:
        check.fail(kind, "left out here", dict(given))
    for name in given:
        check.known(f"a name in {kind}", name, known)
    for name in known:
        if name not in given:
            check.fail(f"{name} in {kind}", "given", dict(given))
    return [given[each] for each in known]


def fail_numbers(kind: str, given: object, known: tuple[str, ...]) -> NoReturn:
    """Says which value is no number, and how other values can be given."""
    if not isinstance(given, Mapping):
        check.fail(kind, "a list of numbers", given)
    for name in known:
        if not check.is_number(given[name]):
            example = f"{kind}={{{name!r}: category()}} takes texts"
            example += ", flag() true and false, number() missing numbers"
            check.fail(f"{name} in {kind}", f"a number ({example})", given[name])
    check.fail(kind, "a mapping of names to numbers", given)


def feature_names(arms: object) -> tuple[str, ...]:
    """The names of the features of the first arm that has any."""
    if not isinstance(arms, Mapping):
        return ()
    return next((tuple(each) for each in arms.values() if each and isinstance(each, Mapping)), ())


def own_arms(given: Mapping[str, Any] | None, available: object) -> Mapping[str, Any]:
    """Checks the arms that a decision brings."""
    if not isinstance(given, Mapping) or not given:
        check.fail("arms", "the features of at least one arm by name", given)
    if available is not None:
        check.fail("available", "left out where a decision brings its own arms", available)
    return given


def request(given: Mapping[str, object], kind: type[Fields]) -> Fields:
    """Makes a request from a mapping with the same names."""
    if not isinstance(given, Mapping):
        check.fail("a request", "a mapping or a Request", given)
    for key in given:
        check.known("a part of a request", key, kind._fields)  # type: ignore[attr-defined]
    return kind(**given)
