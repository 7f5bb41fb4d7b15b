"""Decisions that wait for their rewards: their tickets in one table, oldest first."""

from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from driftbandits.agents.learner import Acts
from driftbandits.agents.words import WORD

FIRST_ROWS = 64


class Open(NamedTuple):
    arm: int
    law: np.ndarray  # (arms of the moment,) float32
    time: float
    row: int  # of its ticket


class Answered(NamedTuple):
    arm: int
    law: np.ndarray
    reward: float | None  # what was learnt; none where it was forgotten
    expired: bool


class OpenDecisions:
    """Rows are used again; the table doubles when there is none."""

    def __init__(self, width: int) -> None:
        self.waiting: dict[str, Open] = {}  # by id, in the order of the decisions
        self.tickets = np.zeros((FIRST_ROWS, width), WORD)
        self._free = list(range(FIRST_ROWS))

    def add(self, ids: list[str], time: float, acts: Acts, arms: int) -> None:
        laws, rows = shared(acts.laws[:, :arms].copy()), self.put(acts.tickets)
        for id, arm, law, row in zip(ids, acts.arms.tolist(), laws, rows, strict=True):
            self.waiting[id] = Open(arm, law, time, row)

    def put(self, tickets: np.ndarray) -> list[int]:
        """Their rows in the table."""
        while len(self._free) < len(tickets):
            size = len(self.tickets)
            self.tickets = np.concatenate([self.tickets, np.zeros_like(self.tickets)])
            self._free.extend(range(size, 2 * size))
        rows = [self._free.pop() for _ in tickets]
        self.tickets[rows] = tickets
        return rows

    def remove(self, id: str) -> Open:
        kept = self.waiting.pop(id)
        self._free.append(kept.row)
        return kept

    def tickets_of(self, ids: list[str]) -> np.ndarray:
        return self.tickets[[self.waiting[id].row for id in ids]]

    def until(self, time: float) -> list[str]:
        """Those that were made at that time or before."""
        return [id for id, _ in takewhile(lambda x: x[1].time <= time, self.waiting.items())]

    def oldest(self, count: int) -> list[str]:
        return list(islice(self.waiting, max(count, 0)))


def shared(laws: np.ndarray) -> list[np.ndarray]:
    """The rows; the same object for all where they are equal."""
    return [laws[0].copy()] * len(laws) if (laws == laws[0]).all() else list(laws)
