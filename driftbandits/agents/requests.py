"""What an agent is asked, and what it answers."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from driftbandits.agents.checks import Context


class Asked(Protocol):
    """Whatever has these three."""

    @property
    def context(self) -> Context: ...

    @property
    def available(self) -> Sequence[str] | None: ...

    @property
    def id(self) -> str | None: ...


class Request(NamedTuple):
    """What a decision is asked for with."""

    context: Context = ()  # numbers in the order of the context's names, or by name
    available: Sequence[str] | None = None  # arms; none is all that are not retired
    id: str | None = None  # the caller's own; none makes one


class Row(NamedTuple):
    """A request as the policy sees it."""

    context: np.ndarray  # (context_dim,)
    available: np.ndarray  # (slots,) bool


class AgentDecision(NamedTuple):
    """An arm, and with which probability it and the others were chosen."""

    id: str
    arm: str
    probability: float
    probabilities: dict[str, float]
