"""How much of a bandit's work makes one step, by the time it takes.

What is computed does not depend on the steps: a learner goes through decisions and rewards one
after the other, however many come at once.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from driftbandits.agents.requests import PolicyInput

STEP = 0.02  # seconds, about: between two steps other bandits may have their turn
MOST = 256  # decisions or rewards in a step

Item = TypeVar("Item")


class Pace:
    """Starts with one at a time and doubles while there is time left."""

    def __init__(self) -> None:
        self.size = 1  # what fits a step

    def learn(self, size: int, seconds: float) -> None:
        """Notes that so many took so long."""
        if seconds > STEP:
            self.size = max(1, int(min(size, self.size) * STEP / seconds))
        elif size >= self.size and 2 * seconds < STEP:  # fewer say nothing of many
            self.size = min(MOST, 2 * self.size)

    def steps(self, items: list[Item]) -> Iterator[list[Item]]:
        """Splits items into steps; the size of each follows from the one before."""
        first = 0
        while first < len(items):
            step = items[first : first + self.size]
            first += len(step)
            yield step


def decision_steps(
    new: dict[str, PolicyInput], pace: Pace, of_one_mask: bool
) -> Iterator[dict[str, PolicyInput]]:
    """Splits decisions into steps; with `of_one_mask`, a new mask begins a new one."""
    if len(new) == 1 or (0 < len(new) <= pace.size and not of_one_mask):  # most of the time
        yield new
        return
    items, first = list(new.items()), 0
    while first < len(items):
        last = min(first + pace.size, len(items))
        if of_one_mask:
            mask = items[first][1].available
            others = range(first + 1, last)
            last = next((at for at in others if differ(items[at][1].available, mask)), last)
        yield dict(items[first:last])
        first = last


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    return one is not other and not np.array_equal(one, other)
