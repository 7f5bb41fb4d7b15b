"""The settings of an agent, most of which never change, and its counts so far."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from driftbandits import check

# What may change later: it is asked only about what comes in, and the policy knows nothing of it.
CHANGEABLE = ("out_of_range", "context_ranges")
MOST_OPEN = 10_000_000  # decisions of one agent


Columns = tuple[str, ...] | Mapping[str, str]  # names of numbers, or texts of a schema's fields


class AgentSettings(NamedTuple):
    """The settings of an agent; `Agent` explains each."""

    policy: str = "tracker"
    seed: int = 0
    context: Columns = ()  # names of numbers, or a schema
    window: float | None = None
    default_reward: float | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    context_ranges: Mapping[str, tuple[float, float]] = {}
    out_of_range: str = "refuse"
    noise: float = 0.5
    horizon: int | None = None
    remember: int = 10_000
    max_open: int = 100_000
    features: Columns = ()  # of the arms


def settings_of(stored: Mapping[str, Any]) -> AgentSettings:
    """As an older version may have stored them: until 0.9 every number was accepted, and agents
    had no limit of open decisions.
    """
    known = {key: value for key, value in stored.items() if key in AgentSettings._fields}
    if check.is_integer(known.get("max_open")):
        known["max_open"] = min(known["max_open"], MOST_OPEN)
    return AgentSettings(**{"out_of_range": "accept"} | known)


class AgentCounts(NamedTuple):
    """How many decisions were made, and how many of them were rewarded or expired."""

    decisions: int
    rewards: int
    expired: int
