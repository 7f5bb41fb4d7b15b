"""Requests to an agent, and its decisions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from driftbandits.agents.checks import Context, Features
from driftbandits.agents.probabilities import Probabilities, computed


class DecisionRequest(Protocol):
    """A request for a decision, whatever its type: `Request`, or a message of the service."""

    @property
    def context(self) -> Context: ...

    @property
    def available(self) -> Sequence[str] | None: ...

    @property
    def id(self) -> str | None: ...

    @property
    def arms(self) -> Mapping[str, Features | None] | None: ...

    @property
    def k(self) -> int | None: ...


class Request(NamedTuple):
    """A request for a decision.

    Attributes:
        context: The numbers in the order of the context's names, or a mapping by name.
        available: The names of the arms to choose from. None means all that are not retired.
        id: Your own id of the decision. None makes one.
        arms: The arms to choose from, instead of `available`, with features that count for this
            decision only, or None for those that the arm has.
        k: How many arms to choose, for a slate. None chooses one arm.

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
    arms: Mapping[str, Features | None] | None = None
    k: int | None = None


class PolicyInput(NamedTuple):
    """A request that was checked."""

    context: Any  # the values: numbers (context_dim,), or those of a schema
    available: np.ndarray  # (slots,) bool
    features: Mapping[int, Any] | None = None  # of this decision alone, by slot
    slate: "Slate | None" = None  # of which it is one place
    place: int | None = None  # in the slate: 1, 2, 3, ...
    new_arms: Mapping[str, Any] | None = None  # to add before it, with their features


class Slate:
    """What is chosen already on a slate, of which every place has another arm."""

    __slots__ = ("beside", "chosen")

    def __init__(self, chosen: list[int]) -> None:
        self.chosen = chosen  # slots of arms
        self.beside: list[str] = []  # places that the same batch asks for by their own ids


def place_ids(id: str, k: int | None) -> list[str]:
    """The ids of a request's decisions: of the places of a slate, or of the only one."""
    return [id] if k is None else [f"{id}.{place}" for place in range(1, k + 1)]


class AgentDecision:
    """A decision of an agent: the chosen arm, and the probabilities with which it was drawn.

    The probabilities are those of the moment of the decision. They are computed when you read
    them.

    Attributes:
        id: The id to give its reward with.
        arm: The name of the chosen arm.
        slate: The id of its slate. None if it is the only arm that was asked for.
        place: Its place on the slate: 1, 2, 3, ... None without a slate.

    Example:
        ```python
        from driftbandits import Agent, AgentDecision

        decision = Agent(["red", "green"], seed=1).decide(id="visit-1")
        assert isinstance(decision, AgentDecision)
        assert decision.id == "visit-1"
        assert decision.probability == decision.probabilities[decision.arm]
        ```
    """

    __slots__ = ("_names", "_source", "arm", "id", "place", "slate")

    def __init__(
        self,
        id: str,
        arm: str,
        names: Sequence[str],
        source: Probabilities,
        slate: str | None = None,
        place: int | None = None,
    ) -> None:
        """Takes the names of all arms in the order of their probabilities."""
        self.id, self.arm, self._names, self._source = id, arm, names, source
        self.slate, self.place = slate, place

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
        slate = "" if self.slate is None else f"slate={self.slate!r}, place={self.place}, "
        return (
            f"AgentDecision(id={self.id!r}, arm={self.arm!r}, {slate}"
            f"probabilities={self.probabilities})"
        )

    def _values(self) -> tuple[str, str, str | None, int | None, dict[str, float]]:
        return self.id, self.arm, self.slate, self.place, self.probabilities
