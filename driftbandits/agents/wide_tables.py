"""The tickets and the probabilities of a block of decisions, in memory or in a file."""

from typing import NamedTuple

import numpy as np

from driftbandits.agents.packed_tickets import WORD
from driftbandits.agents.spill_file import SpillFile

FLOAT = np.dtype(np.float32)


class InMemory(NamedTuple):
    tickets: np.ndarray  # (decisions, words) uint32
    probabilities: np.ndarray  # (different ones, slots for arms) float32

    @property
    def nbytes(self) -> int:
        return self.tickets.nbytes + self.probabilities.nbytes

    def tickets_at(self, rows: np.ndarray | slice) -> np.ndarray:
        return self.tickets[rows]

    def probabilities_at(self, place: int) -> np.ndarray:
        return self.probabilities[place].copy()

    def loaded(self) -> "InMemory":
        return self


class InFile:
    """Tables in the file, read row by row; their place is freed with this object."""

    nbytes = 0  # in memory

    def __init__(self, tables: InMemory, file: SpillFile) -> None:
        self._shapes = tables.tickets.shape, tables.probabilities.shape
        self._file = file
        self._place = file.write(tables.tickets.tobytes() + tables.probabilities.tobytes())

    def tickets_at(self, rows: np.ndarray | slice) -> np.ndarray:
        count, width = self._shapes[0]
        size = WORD().itemsize * width
        wanted = range(count)[rows] if isinstance(rows, slice) else rows.tolist()
        found = [self._file.read(self._place, row * size, size) for row in wanted]
        return np.ndarray((len(found), width), WORD, b"".join(found))

    def probabilities_at(self, place: int) -> np.ndarray:
        size = FLOAT.itemsize * self._shapes[1][1]
        row = self._file.read(self._place, self._split + place * size, size)
        return np.frombuffer(row, FLOAT)

    def loaded(self) -> InMemory:
        content = self._file.read(
            self._place, 0, self._split + FLOAT.itemsize * int(np.prod(self._shapes[1]))
        )
        tickets = np.ndarray(self._shapes[0], WORD, content)
        return InMemory(tickets, np.ndarray(self._shapes[1], FLOAT, content, self._split))

    @property
    def _split(self) -> int:
        """How many bytes come before the probabilities."""
        return WORD().itemsize * int(np.prod(self._shapes[0]))

    def __del__(self) -> None:
        if hasattr(self, "_place"):  # it was written
            self._file.free(self._place)


WideTables = InMemory | InFile
