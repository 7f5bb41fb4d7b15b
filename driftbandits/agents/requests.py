"""What an agent is asked, and what it answers."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from driftbandits.agents.checks import Context
from driftbandits.agents.probabilities import Probabilities, computed


class DecisionRequest(Protocol):
    """A request for a decision, whatever its type: `Request`, or a message of the service."""

    @property
    def context(self) -> Context: ...

    @property
    def available(self) -> Sequence[str] | None: ...

    @property
    def id(self) -> str | None: ...


class Request(NamedTuple):
    """A request for a decision."""

    context: Context = ()  # numbers in the order of the context's names, or by name
    available: Sequence[str] | None = None  # arms; None is all that are not retired
    id: str | None = None  # the caller's own; None makes one


class PolicyInput(NamedTuple):
    """A request as the policy sees it."""

    context: np.ndarray  # (context_dim,)
    available: np.ndarray  # (slots,) bool


class AgentDecision:
    """The chosen arm, its probability, and those of all arms, computed when they are read.

    Attributes:
        id: under which its reward is given.
        arm: the name of the chosen arm.
    """

    __slots__ = ("_names", "_source", "arm", "id")

    def __init__(self, id: str, arm: str, names: Sequence[str], source: Probabilities) -> None:
        """With the names of all arms, in the order of their probabilities."""
        self.id, self.arm, self._names, self._source = id, arm, names, source

    @property
    def probabilities(self) -> dict[str, float]:
        """Of all arms, by name; of those that came later, none."""
        return dict(zip(self._names, computed(self._source).tolist(), strict=False))

    @property
    def probability(self) -> float:
        """Of the chosen arm, with which it was drawn."""
        return self.probabilities[self.arm]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentDecision) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.id, self.arm))

    def __repr__(self) -> str:
        id, arm, probabilities = self._values()
        return f"AgentDecision(id={id!r}, arm={arm!r}, probabilities={probabilities})"

    def _values(self) -> tuple[str, str, dict[str, float]]:
        return self.id, self.arm, self.probabilities
