"""The features of an agent's arms: what is known of each, and the table that its policy sees."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.agents.vectors import Vectors


class Checkpoint(NamedTuple):
    """What to go back to where arms are added that must not stay."""

    table: np.ndarray
    vectors: Any


class ArmFeatures:
    """The features of the arm in each slot; an arm without any has zeros.

    Attributes:
        table: The features of all arms, (slots, width) float32. Never changed, but replaced.
    """

    def __init__(self, vectors: Vectors, slots: int) -> None:
        self.vectors = vectors
        self.values: dict[int, Any] = {}  # by slot
        self.table = np.zeros((slots, vectors.width), np.float32)

    def check(self, given: Any) -> Any:
        """The values of an arm's features, or None if they are not given."""
        if self.vectors.width:
            return None if given is None else self.vectors.check(given)
        if given is not None and not (isinstance(given, Mapping) and not given):
            check.fail("features", "left out, as no arm had any when this agent was made", given)
        return None

    def are(self, slot: int, values: Any) -> bool:
        """Whether the arm in this slot has these features already."""
        known = self.values.get(slot)
        if known is None:
            return False
        return bool(self.vectors.to_json(known) == self.vectors.to_json(values))

    def set(self, values: Mapping[int, Any]) -> None:
        """Sets the features of arms, by slot; scales and categories follow.

        Where those change, all arms are encoded anew: so the table follows from what was seen, and
        is the same after a restart.
        """
        known = {slot: each for slot, each in values.items() if each is not None}
        before = self.vectors.known()
        for each in known.values():
            self.vectors.see(each)
        self.values |= known
        if self.vectors.known() == before:
            self.table = self.with_own(known)
        else:
            self.encode()

    def encode(self) -> None:
        self.table = self._with(np.zeros_like(self.table), self.values)

    def with_own(self, values: Mapping[int, Any]) -> np.ndarray:
        """The table for one decision that brings features of its own.

        Scales and categories do not follow: whoever may decide may not change them for all.
        """
        return self._with(self.table.copy(), values)

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.table, self.vectors.checkpoint())

    def go_back(self, checkpoint: Checkpoint, arms: int) -> None:
        """Goes back to a time when there were only the first arms."""
        slots, self.table = len(self.table), checkpoint.table
        self.widen(slots)
        self.vectors.go_back(checkpoint.vectors)
        self.values = {slot: each for slot, each in self.values.items() if slot < arms}

    def widen(self, slots: int) -> None:
        more = np.zeros((slots - len(self.table), self.vectors.width), np.float32)
        self.table = np.concatenate([self.table, more])

    def _with(self, table: np.ndarray, values: Mapping[int, Any]) -> np.ndarray:
        for slot, each in values.items():
            table[slot] = self.vectors.encode(each)
        return table
