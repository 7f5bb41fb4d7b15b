"""What users give, as vectors of numbers: contexts, and the features of arms.

Either as plain numbers by name, or as values of the types that a schema names. `check` changes
nothing; `see` learns scales and categories, once for each decision or slate; `encode` gives the
vector.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from driftbandits.agents import checks
from driftbandits.agents.encoder import Encoder
from driftbandits.agents.fields import Category, Field, Flag, Number
from driftbandits.agents.ranges import Ranges
from driftbandits.agents.schema import Values, schema_of
from driftbandits.agents.settings import Columns


class Vectors(Protocol):
    """How one kind of input becomes vectors."""

    width: int
    names: tuple[str, ...]
    is_typed: bool

    def check(self, given: Any) -> Any:
        """The values of an input; InputError if it breaks a rule."""

    def example(self) -> Any:
        """An input that breaks no rule."""

    def see(self, values: Any) -> None: ...

    def encode(self, values: Any) -> np.ndarray:
        """(width,) float32"""

    def to_json(self, values: Any) -> Any: ...

    def from_json(self, stored: Any) -> Any: ...

    def known(self) -> Any:
        """The scales and categories that `encode` uses now."""

    def checkpoint(self) -> Any: ...

    def go_back(self, checkpoint: Any) -> None: ...

    def state(self) -> Any:
        """What was seen, for JSON."""

    def set_state(self, stored: Any) -> None:
        """Continues from a state; one that is none is a ValueError."""


class NumberVectors:
    """Plain numbers by name, as they are, in their ranges."""

    is_typed = False

    def __init__(self, kind: str, names: tuple[str, ...], ranges: Ranges) -> None:
        self.kind, self.names, self.width, self.ranges = kind, names, len(names), ranges

    def check(self, given: Any) -> np.ndarray:
        row = checks.number_row(self.kind, given, self.names)
        return self.ranges.checked(row) if self.names else row

    def example(self) -> list[float]:
        nearest_to_0: list[float] = np.clip(0.0, self.ranges.lows, self.ranges.highs).tolist()
        return nearest_to_0

    def see(self, values: np.ndarray) -> None: ...

    def encode(self, values: np.ndarray) -> np.ndarray:
        return values

    def to_json(self, values: np.ndarray) -> list[float]:
        found: list[float] = values.astype(np.float32).tolist()
        return found

    def from_json(self, stored: Any) -> np.ndarray:
        return checks.number_row(self.kind, stored, self.names).astype(np.float32)

    def known(self) -> None: ...

    def checkpoint(self) -> None: ...

    def go_back(self, checkpoint: None) -> None: ...

    def state(self) -> None: ...

    def set_state(self, stored: Any) -> None:
        if stored is not None:
            raise ValueError("numbers have no scale")


class TypedVectors:
    """Values of the types that a schema names."""

    is_typed = True

    def __init__(self, kind: str, texts: Mapping[str, str]) -> None:
        self._schema = schema_of(kind, texts)
        self._encoder = Encoder(self._schema)
        self.names, self.width = self._schema.names, self._schema.width
        self.see, self.encode = self._encoder.see, self._encoder.encode
        self.known = self._encoder.known
        self.checkpoint, self.go_back = self._encoder.checkpoint, self._encoder.go_back
        self.state, self.set_state = self._encoder.state, self._encoder.set_state

    def check(self, given: Any) -> Values:
        return self._schema.check({} if type(given) in checks.LISTS and not given else given)

    def example(self) -> dict[str, Any]:
        return {
            name: example_of(field)
            for name, field in zip(self.names, self._schema.fields, strict=True)
        }

    def to_json(self, values: Any) -> dict[str, Any]:
        both = zip(self.names, values, strict=True)
        return {name: value for name, value in both if value is not None}

    def from_json(self, stored: Any) -> Any:
        return self._schema.check(stored)


def example_of(field: Field) -> Any:
    if isinstance(field, Category):
        return "example"
    if isinstance(field, Number):
        return field.ends[0] if field.ends else 0.0
    return True if isinstance(field, Flag) else 0.0


def vectors_of(kind: str, columns: Columns, ranges: Ranges) -> Vectors:
    if isinstance(columns, Mapping):
        return TypedVectors(kind, columns)
    return NumberVectors(kind, columns, ranges)


def width_of(kind: str, columns: Columns) -> int:
    return schema_of(kind, columns).width if isinstance(columns, Mapping) else len(columns)


def checked_columns(kind: str, given: Any) -> Columns:
    """Names, or a schema as texts."""
    if isinstance(given, Mapping):
        return schema_of(kind, given).texts
    checks.names(kind, given)
    return tuple(given)
