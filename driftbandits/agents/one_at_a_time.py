"""Methods that several threads may call: they take turns."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Turns:
    """A lock whose copy is a new lock, so that its owner can be copied."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Turns":
        return Turns()


class HasTurns(Protocol):
    _turns: Turns


Self = TypeVar("Self", bound=HasTurns)


def one_at_a_time(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    @wraps(method)
    def in_turn(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._turns:
            return method(self, *args, **kwargs)

    return in_turn
