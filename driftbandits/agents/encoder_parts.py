"""How an encoder writes each kind of field, with scales and categories as seen.

A number without a range is scaled by the median and the 16% and 84% quantiles of the last 256: one
outlier cannot spoil them, and they follow drift. The scale changes after 1, 2, 4, ..., 256 numbers
and then after every 256, so that learners are not disturbed at each step. It depends on the numbers
and their order alone, not on times or batches, so that a replay gives the same bits.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from driftbandits.agents.checks import LARGEST_NUMBER, is_name
from driftbandits.agents.fields import Category, Cyclic, Field, Number

BLOCK = 256
LOWER, MIDDLE, UPPER = 0.16, 0.5, 0.84
LEAST_SPREAD = 1e-9  # of the centre
FURTHEST = 5.0


class Scale(NamedTuple):
    centre: float
    spread: float


UNSEEN = Scale(0.0, 1.0)


class Part(Protocol):
    """Writes a value that is not missing into the columns of its field."""

    def write(self, row: np.ndarray, value: Any) -> None: ...


class LearningPart(Part, Protocol):
    """Depends on what it has seen. A checkpoint stays as it is, whatever happens later."""

    @property
    def known(self) -> Any:
        """The scale or the categories by which it writes."""

    def see(self, value: Any) -> None: ...

    def checkpoint(self) -> Any: ...

    def go_back(self, checkpoint: Any) -> None: ...

    def state(self) -> Any: ...

    def read(self, state: Any) -> Any:
        """The checkpoint of a state."""


class RangePart(Part):
    def __init__(self, start: int, ends: tuple[float, float]) -> None:
        self.start, (self.low, self.high) = start, ends

    def write(self, row: np.ndarray, value: float) -> None:
        place = 2 * (value - self.low) / (self.high - self.low) - 1
        row[self.start] = min(max(place, -1.0), 1.0)  # a rounded float32 may be just outside


class ValuesPart(Part):
    def __init__(self, start: int, values: Sequence[str]) -> None:
        self.columns = {value: start + place for place, value in enumerate(values)}
        self.others = start + len(values)

    def write(self, row: np.ndarray, value: str) -> None:
        row[self.columns.get(value, self.others)] = 1


class CyclicPart(Part):
    def __init__(self, start: int, period: float) -> None:
        self.start, self.period = start, period

    def write(self, row: np.ndarray, value: float) -> None:
        angle = 2 * math.pi * ((value % self.period) / self.period)
        row[self.start] = math.sin(angle)
        row[self.start + 1] = math.cos(angle)


class FlagPart(Part):
    def __init__(self, start: int) -> None:
        self.start = start

    def write(self, row: np.ndarray, value: bool) -> None:
        row[self.start] = value


class ScalePart(LearningPart):
    """A number without a range. At a refresh the last 256 are all since the refresh before."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.count, self.scale = 0, UNSEEN
        self.recent: list[float] = []  # since the last multiple of 256

    @property
    def known(self) -> Scale:
        return self.scale

    def write(self, row: np.ndarray, value: float) -> None:
        centre, spread = self.scale
        row[self.start] = min(max((value - centre) / spread, -FURTHEST), FURTHEST)

    def see(self, value: float) -> None:
        self.recent.append(value)
        self.count += 1
        size = len(self.recent)
        if size == BLOCK or (size == self.count and not size & (size - 1)):
            self.scale = scale_of(self.recent)
        if size == BLOCK:
            self.recent = []

    def checkpoint(self) -> tuple[int, Scale, list[float]]:
        return self.count, self.scale, self.recent.copy()

    def go_back(self, checkpoint: tuple[int, Scale, list[float]]) -> None:
        self.count, self.scale, recent = checkpoint
        self.recent = recent.copy()

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "recent": [*self.recent], **self.scale._asdict()}

    def read(self, state: Any) -> tuple[int, Scale, list[float]]:
        if type(state) is not dict or state.keys() != {"count", "recent", *Scale._fields}:
            refuse(state)
        count, recent, scale = state["count"], state["recent"], (state["centre"], state["spread"])
        is_counted = type(count) is int and count >= 0 and type(recent) is list
        if not is_counted or len(recent) != count % BLOCK or not all(map(is_value, recent)):
            refuse(state)
        if not all(map(is_float, scale)) or not is_possible(Scale(*scale), count, recent):
            refuse(state)
        return count, Scale(*scale), [*recent]


class SeenPart(LearningPart):
    """A category whose columns belong to the values that were seen first."""

    def __init__(self, start: int, buckets: int) -> None:
        self.start, self.most = start, buckets - 1
        self.places: dict[str, int] = {}  # replaced by a new one, never changed

    @property
    def known(self) -> dict[str, int]:
        return self.places

    def write(self, row: np.ndarray, value: str) -> None:
        row[self.start + self.places.get(value, self.most)] = 1

    def see(self, value: str) -> None:
        if value not in self.places and len(self.places) < self.most:
            self.places = {**self.places, value: len(self.places)}

    def checkpoint(self) -> dict[str, int]:
        return self.places

    def go_back(self, checkpoint: dict[str, int]) -> None:
        self.places = checkpoint

    def state(self) -> list[str]:
        return [*self.places]

    def read(self, state: Any) -> dict[str, int]:
        if type(state) is not list or len(state) > self.most:
            refuse(state)
        if not all(type(value) is str and is_name(value) for value in state):
            refuse(state)
        if len(set(state)) < len(state):
            refuse(state)
        return {value: place for place, value in enumerate(state)}


def part_of(field: Field, start: int) -> Part:
    """The part that writes a field, beginning with the column `start`."""
    if isinstance(field, Number):
        return ScalePart(start) if field.ends is None else RangePart(start, field.ends)
    if isinstance(field, Category):
        if field.values is None:
            return SeenPart(start, field.buckets)
        return ValuesPart(start, field.values)
    return CyclicPart(start, field.period) if isinstance(field, Cyclic) else FlagPart(start)


def scale_of(values: list[float]) -> Scale:
    ordered = sorted(values)
    centre = quantile(ordered, MIDDLE)
    spread = (quantile(ordered, UPPER) - quantile(ordered, LOWER)) / 2
    return Scale(centre, spread if spread > LEAST_SPREAD * abs(centre) else max(abs(centre), 1.0))


def quantile(ordered: list[float], share: float) -> float:
    """By linear interpolation, in plain floats, which are the same on every machine."""
    place = share * (len(ordered) - 1)
    below = int(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low + (high - low) * (place - below)


def is_float(value: object) -> bool:
    return type(value) is float and abs(value) <= LARGEST_NUMBER


def is_value(value: object) -> bool:
    """A number as a schema returns it, without negative zero."""
    return is_float(value) and str(value) != "-0.0"


def is_possible(scale: Scale, count: int, recent: list[float]) -> bool:
    if count >= BLOCK:
        return scale.spread > LEAST_SPREAD * abs(scale.centre)
    return scale == (scale_of(recent[: 1 << count.bit_length() - 1]) if count else UNSEEN)


def refuse(state: object) -> NoReturn:
    raise ValueError(f"the state must be one that an encoder wrote, got {state!r:.200}")
