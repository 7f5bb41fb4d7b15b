"""What an agent is asked, and what it answers."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from driftbandits.agents.checks import Context


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


class AgentDecision(NamedTuple):
    """The chosen arm, its probability, and those of all arms."""

    id: str
    arm: str
    probability: float
    probabilities: dict[str, float]
