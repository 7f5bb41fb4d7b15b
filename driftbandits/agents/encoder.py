"""Encodes checked values as rows of float32 for a policy."""

from typing import Any

import numpy as np

from driftbandits.agents.encoder_parts import (
    LearningPart,
    Part,
    ScalePart,
    SeenPart,
    part_of,
    refuse,
)
from driftbandits.agents.fields import columns_of
from driftbandits.agents.schema import Schema, Values

Checkpoint = tuple[Any, ...]


class Encoder:
    """Turns the values of a schema into rows, and learns scales and categories from them."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._parts: list[tuple[Part, int]] = []  # with its column for missing
        self._learning: dict[str, tuple[int, LearningPart]] = {}  # with the place of the value
        start = 0
        for place, (name, field) in enumerate(zip(schema.names, schema.fields, strict=True)):
            part = part_of(field, start)
            start += len(columns_of(name, field))
            missing = schema.width if field.required else start - 1  # no row is that wide
            self._parts.append((part, missing))
            if isinstance(part, ScalePart | SeenPart):
                self._learning[name] = place, part

    def see(self, values: Values) -> None:
        """Learns from the values of a decision, or of a slate: once for all of its places."""
        for place, part in self._learning.values():
            value = values[place]
            if value is not None:
                part.see(value)

    def encode(self, values: Values) -> np.ndarray:
        """The row (width,), in float32, with the scales and categories as they are now."""
        row = np.zeros(self.schema.width, np.float32)
        for (part, missing), value in zip(self._parts, values, strict=True):
            if value is None:
                row[missing] = 1
            else:
                part.write(row, value)
        return row

    def see_and_encode(self, values: Values) -> np.ndarray:
        self.see(values)
        return self.encode(values)

    def known(self) -> tuple[Any, ...]:
        """The scales and categories as they are now."""
        return tuple(part.known for _, part in self._learning.values())

    def checkpoint(self) -> Checkpoint:
        return tuple(part.checkpoint() for _, part in self._learning.values())

    def go_back(self, checkpoint: Checkpoint) -> None:
        """Restores what was known at a checkpoint of this encoder, as often as you like."""
        for (_, part), kept in zip(self._learning.values(), checkpoint, strict=True):
            part.go_back(kept)

    def state(self) -> dict[str, Any]:
        """All that was learned, for JSON."""
        return {name: part.state() for name, (_, part) in self._learning.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over a state, or raises `ValueError` and changes nothing."""
        if type(state) is not dict or state.keys() != self._learning.keys():
            refuse(state)
        self.go_back(tuple(part.read(state[name]) for name, (_, part) in self._learning.items()))
