"""The ranges of rewards and context numbers, and what happens outside of them.

One number a million times too large would ruin what most policies know, and nothing in a log can be
unlearned. So what is out of its range is refused, unless the settings say otherwise.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.agents.settings import AgentSettings

OUT_OF_RANGE = ("refuse", "clip", "accept")
USUAL = (-100.0, 100.0)  # the range of a context number that was given none, and of features


class Ranges(NamedTuple):
    """The ranges of the rewards and of each context number in order.

    A float32 that was rounded to an end of its range is within.
    """

    out_of_range: str  # one of OUT_OF_RANGE
    low: float
    high: float
    reward_ends: tuple[float, float]  # low and high, or the float32 beside them
    context: tuple[str, ...]
    lows: np.ndarray  # (context_dim,) float64
    highs: np.ndarray  # (context_dim,) float64
    kind: str = "context number"  # for messages
    remedy: str = "context_ranges"

    def refuses(self, reward: float) -> bool:
        low, high = self.reward_ends
        return self.out_of_range == "refuse" and not low <= reward <= high

    def nearest(self, reward: float) -> float:
        """The reward that is learned."""
        return min(max(reward, self.low), self.high) if self.out_of_range == "clip" else reward

    def clipped(self, rewards: list[float]) -> np.ndarray:
        """The rewards that the policy learns."""
        given = np.array(rewards, np.float32)
        return given.clip(self.low, self.high) if self.out_of_range == "clip" else given

    def checked(self, row: np.ndarray) -> np.ndarray:
        """The context that the policy sees."""
        if self.out_of_range == "accept":
            return row
        if self.out_of_range == "clip":
            return row.clip(self.lows, self.highs)
        outside = np.flatnonzero((row < self.lows) | (row > self.highs))
        if outside.size:
            place = outside[0]
            name, given = self.context[place], row[place].item()
            rule = between(self.lows[place].item(), self.highs[place].item())
            check.fail(f"{self.kind} {name}", f"{rule} ({self.remedy})", given)
        return row


def ranges(
    reward_range: tuple[float, float],
    context: tuple[str, ...],
    context_ranges: Mapping[str, tuple[float, float]],
    out_of_range: str,
) -> Ranges:
    ends = [context_ranges.get(name, USUAL) for name in context]
    lows, highs = with_float32(np.array(ends, np.float64).reshape(-1, 2)).T
    low, high = with_float32(np.array([reward_range], np.float64))[0].tolist()
    return Ranges(out_of_range, *reward_range, (low, high), context, lows, highs)


def ranges_of(settings: AgentSettings) -> tuple[Ranges, Ranges]:
    """The ranges of rewards and plain context numbers, and those of plain features."""
    context = () if isinstance(settings.context, Mapping) else settings.context
    features = () if isinstance(settings.features, Mapping) else settings.features
    out_of_range = settings.out_of_range
    return (
        ranges(settings.reward_range, context, settings.context_ranges, out_of_range),
        feature_ranges(features, out_of_range),
    )


def feature_ranges(features: tuple[str, ...], out_of_range: str) -> Ranges:
    """The ranges of plain features of arms."""
    found = ranges((0.0, 1.0), features, {}, out_of_range)
    return found._replace(kind="feature", remedy="number() in a schema has no such range")


def with_float32(ends: np.ndarray) -> np.ndarray:
    """Ranges (n, 2), made so wide that the float32 nearest to an end is within."""
    rounded = ends.astype(np.float32).astype(np.float64)
    lows, highs = np.minimum(ends, rounded)[:, 0], np.maximum(ends, rounded)[:, 1]
    return np.stack([lows, highs], axis=1)


def between(low: float, high: float) -> str:
    return f"from {low:g} to {high:g}"
