"""The settings that an agent has for life, and what it has counted so far."""

from typing import NamedTuple


class AgentSettings(NamedTuple):
    """The settings of an agent; `Agent` explains each."""

    policy: str = "tracker"
    seed: int = 0
    context: tuple[str, ...] = ()
    window: float | None = None
    default_reward: float | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    noise: float = 0.5
    horizon: int | None = None
    remember: int = 10_000
    max_open: int = 100_000


class AgentCounts(NamedTuple):
    """How many decisions were made, and how many of them were rewarded or expired."""

    decisions: int
    rewards: int
    expired: int
