"""Decisions that wait for their rewards: their tickets in one table, oldest first."""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from driftbandits.agents.learner import Acts
from driftbandits.agents.packed_tickets import WORD

FIRST_ROWS = 64
PAGE = 1024  # rows that change their shape at once


class OpenDecision(NamedTuple):
    """A decision that waits for its reward."""

    arm: int
    probabilities: np.ndarray  # (arms of the moment,) float32
    time: float
    row: int  # of its ticket


class OpenDecisions:
    """Rows are used again; the table doubles when there is none."""

    def __init__(self, width: int) -> None:
        self.waiting: dict[str, OpenDecision] = {}  # by id, in the order of the decisions
        self.tickets = np.zeros((FIRST_ROWS, width), WORD)
        self._free = list(range(FIRST_ROWS))

    def add(self, ids: list[str], time: float, acts: Acts, arms: int) -> None:
        rows, arm_numbers = self.put(acts.tickets), acts.arms.tolist()
        probabilities = shared_rows(acts.probabilities[:, :arms].copy())
        for id, arm, its_own, row in zip(ids, arm_numbers, probabilities, rows, strict=True):
            self.waiting[id] = OpenDecision(arm, its_own, time, row)

    def put(self, tickets: np.ndarray) -> list[int]:
        """Their rows in the table."""
        while len(self._free) < len(tickets):
            size = len(self.tickets)
            self.tickets = np.concatenate([self.tickets, np.zeros_like(self.tickets)])
            self._free.extend(range(size, 2 * size))
        rows = [self._free.pop() for _ in tickets]
        self.tickets[rows] = tickets
        return rows

    def remove(self, id: str) -> OpenDecision:
        kept = self.waiting.pop(id)
        self._free.append(kept.row)
        return kept

    def reshape(self, shaped: Callable[[np.ndarray], np.ndarray], width: int) -> Iterator[None]:
        """All tickets in another shape, page by page."""
        tickets = np.zeros((len(self.tickets), width), WORD)
        for first in range(0, len(tickets), PAGE):
            page = slice(first, first + PAGE)
            tickets[page] = shaped(self.tickets[page])
            yield
        self.tickets = tickets

    def tickets_of(self, ids: list[str]) -> np.ndarray:
        return self.tickets[[self.waiting[id].row for id in ids]]

    @property
    def first_time(self) -> float | None:
        """Of the oldest."""
        return next(iter(self.waiting.values())).time if self.waiting else None

    def until(self, time: float, limit: int) -> list[str]:
        """Those that were made at that time or before, at most so many."""
        oldest = islice(self.waiting.items(), limit)
        return [id for id, _ in takewhile(lambda x: x[1].time <= time, oldest)]

    def oldest(self, count: int) -> list[str]:
        return list(islice(self.waiting, max(count, 0)))


def shared_rows(table: np.ndarray) -> list[np.ndarray]:
    """The rows; the same object for all where they are equal."""
    return [table[0].copy()] * len(table) if (table == table[0]).all() else list(table)
