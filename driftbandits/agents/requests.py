"""Requests to an agent, and its decisions."""

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
    """A request for a decision.

    Attributes:
        context: The numbers in the order of the context's names, or a mapping by name.
        available: The names of the arms to choose from. None means all that are not retired.
        id: Your own id of the decision. None makes one.

    Example:
        ```python
        from driftbandits import Agent, Request

        agent = Agent(["red", "green"], context=["hour"], seed=1)
        requests = [Request([0.1], id="visit-1"), Request([0.9], available=["green"])]
        assert agent.decide_many(requests)[1].arm == "green"
        ```
    """

    context: Context = ()
    available: Sequence[str] | None = None
    id: str | None = None


class PolicyInput(NamedTuple):
    """A request as the policy sees it."""

    context: np.ndarray  # (context_dim,)
    available: np.ndarray  # (slots,) bool


class AgentDecision:
    """A decision of an agent: the chosen arm, and the probabilities with which it was drawn.

    The probabilities are those of the moment of the decision. They are computed when you read
    them.

    Attributes:
        id: The id to give its reward with.
        arm: The name of the chosen arm.

    Example:
        ```python
        from driftbandits import Agent, AgentDecision

        decision = Agent(["red", "green"], seed=1).decide(id="visit-1")
        assert isinstance(decision, AgentDecision)
        assert decision.id == "visit-1"
        assert decision.probability == decision.probabilities[decision.arm]
        ```
    """

    __slots__ = ("_names", "_source", "arm", "id")

    def __init__(self, id: str, arm: str, names: Sequence[str], source: Probabilities) -> None:
        """Takes the names of all arms in the order of their probabilities."""
        self.id, self.arm, self._names, self._source = id, arm, names, source

    @property
    def probabilities(self) -> dict[str, float]:
        """The probabilities of all arms at that moment, by name."""
        return dict(zip(self._names, computed(self._source).tolist(), strict=False))

    @property
    def probability(self) -> float:
        """The probability with which the arm was chosen."""
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
