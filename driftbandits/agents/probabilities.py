"""Probabilities of a decision that are computed when somebody reads them.

Thompson sampling draws an arm in no time, but the probability of each arm is an integral. Where
deciding does not change what a policy knows, it can be computed later, for the state of then.
"""

from collections.abc import Callable

import numpy as np

from driftbandits.agents.packed_state import Parts


class DeferredProbabilities:
    """Those of decisions that were made in one state among the same arms."""

    def __init__(
        self,
        compute: Callable[[Parts, np.ndarray], np.ndarray],
        parts: Parts,
        available: np.ndarray,
        arms: int,
    ) -> None:
        """Of the first arms: the others are spare slots."""
        self._compute, self._parts, self._available, self._arms = compute, parts, available, arms
        self._known: np.ndarray | None = None

    def get(self) -> np.ndarray:
        """The same numbers whenever it is asked, by whichever thread."""
        parts = self._parts  # before the question: it goes after the answer is there
        if self._known is None:
            self._known = self._compute(parts, self._available)[: self._arms]
            self._parts = ()
        return self._known


Probabilities = np.ndarray | DeferredProbabilities


def computed(source: Probabilities) -> np.ndarray:
    return source if isinstance(source, np.ndarray) else source.get()
