"""Probabilities of a decision that are computed when they are read.

Thompson sampling draws an arm in no time, but the probability of each arm is an integral. Where
deciding does not change what a policy knows, it can be computed later, for the state of then.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandits.agents.packed_state import Parts


class DeferredProbabilities:
    """Probabilities of decisions made in one state among the same arms."""

    def __init__(
        self,
        compute: Callable[[Parts, np.ndarray], np.ndarray],
        parts: Parts,
        available: np.ndarray,
        arms: int,
    ) -> None:
        """Computes those of the first arms; other slots are spare."""
        self._compute, self._state, self._available, self._arms = compute, parts, available, arms
        self._known: np.ndarray | None = None

    def get(self) -> np.ndarray:
        """Returns the same numbers at any time, on any thread."""
        if self._known is None:
            self._known = self._compute(self._state, self._available)[: self._arms]
        return self._known

    def are_those_of(self, parts: Parts, available: np.ndarray, arms: int) -> bool:
        same = self._state is parts and self._arms == arms
        return same and np.array_equal(self._available, available)

    def __deepcopy__(self, memo: dict[int, Any]) -> "DeferredProbabilities":
        return self  # it never changes

    def __reduce__(self) -> tuple[Any, ...]:
        return np.array, (self.get(),)


Probabilities = np.ndarray | DeferredProbabilities


def computed(source: Probabilities) -> np.ndarray:
    return source if isinstance(source, np.ndarray) else source.get()
