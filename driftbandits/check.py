"""Checks of input, all with the same kind of message: `<name> must be <rule>, got <value>`."""

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, NoReturn

LARGEST_FLOAT32, SMALLEST_FLOAT32 = 3.4e38, 1.2e-38  # everything is computed in it
SHOWN = 12  # names in a message; of a longer list it shows FIRST and says where to find the others
FIRST = 3
LISTED_BY = {
    "policy": "driftbandits list policies",
    "environment": "driftbandits list environments",
    "experiment": "driftbandits list experiments",
    "NAME": "driftbandits list",
}
SETTING_OF = "a setting of "
LONGEST_SHOWN = 300  # characters of a value in a message


class InputError(ValueError):
    """An invalid argument, described in one line.

    It is a `ValueError`. The message names the argument, the rule and the value, and suggests the
    nearest name where one was misspelt.

    Example:
        ```python
        from driftbandits import InputError, compare

        try:
            compare("tompson")
        except InputError as error:
            print(error)
        ```
    """


def fail(name: str, rule: str, value: object) -> NoReturn:
    raise InputError(f"{shortened(name)} must be {rule}, got {shown(value)}")


def shown(value: object) -> str:
    """A value as it would be written in Python, cut off if it is long."""
    try:
        return shortened(repr(value))
    except (ValueError, RecursionError):  # an integer of thousands of digits, or deep lists
        return f"a very long {type(value).__name__}"


def shortened(text: str) -> str:
    """A text for a message, cut off if it is long."""
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}... ({len(text):,} characters)"


def is_number(value: object) -> bool:
    """A real number that float32 can hold."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return abs(float(value)) <= LARGEST_FLOAT32 and (
            value == 0 or abs(float(value)) >= SMALLEST_FLOAT32
        )
    except OverflowError:
        return False


def is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def integer(at_least: int = 1, at_most: int = 2**31 - 1, **values: Any) -> None:
    for name, value in values.items():
        if not is_integer(value) or value < at_least:
            fail(name, f"a whole number of at least {at_least}", value)
        if value > at_most:
            fail(name, f"a whole number of at most {at_most}", value)


def positive(**values: Any) -> None:
    for name, value in values.items():
        if not is_number(value) or value <= 0:
            fail(name, "a positive number", value)


def not_negative(**values: Any) -> None:
    for name, value in values.items():
        if not is_number(value) or value < 0:
            fail(name, "a number of at least 0", value)


def probability(**values: Any) -> None:
    for name, value in values.items():
        if not is_number(value) or not 0 <= value <= 1:
            fail(name, "a probability in [0, 1]", value)


def flag(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, bool):
            fail(name, "true or false", value)


def known(kind: str, value: object, names: Iterable[str], instead: str = "") -> None:
    """Raises `InputError` for a name that is not in the list, and suggests the nearest one.

    Args:
        kind: What the name is for, to begin the message.
        value: The name.
        names: All names that are known.
        instead: What else would do, if anything.
    """
    names = list(names)
    if value in names:
        return
    rule = f"one of {listing(kind, names)}" if names else "left out (there are none)"
    near = difflib.get_close_matches(value, names, n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    other = f"{instead}, or " if instead else ""
    raise InputError(f"{kind} must be {other}{rule}, got {shown(value)}{hint}")


def listing(kind: str, names: list[str]) -> str:
    """All names; of many, the first ones and the command that lists the others."""
    if len(names) <= SHOWN:
        return ", ".join(names)
    command = LISTED_BY.get(kind)
    if kind.startswith(SETTING_OF):
        command = f"driftbandits explain {kind.removeprefix(SETTING_OF)}"
    place = f" (see `{command}`)" if command else ""
    return f"{', '.join(names[:FIRST])} and {len(names) - FIRST} more{place}"
