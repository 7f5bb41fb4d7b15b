"""The probabilities of a bandit's newest decisions, in blocks that a copy shares.

With hundreds of arms they are megabytes. A copy for another thread costs no more than a list, and
room for a new arm nothing at all: a block is copied, or made wider, when it is next written to.
"""

import numpy as np

ROWS = 250  # of a block


class ProbabilityRing:
    """A table of probabilities with a row for each of the newest decisions."""

    def __init__(self, capacity: int) -> None:
        self._blocks = [np.zeros((0, 0), np.float32)] * -(-capacity // ROWS)
        self._own = [False] * len(self._blocks)  # which of them no copy shares

    def write(self, start: int, rows: np.ndarray) -> None:
        """Writes rows from a place on; arms that they do not have get 0."""
        done = 0
        while done < len(rows):
            number, first = divmod(start + done, ROWS)
            part = rows[done : done + ROWS - first]
            block = self._block_to_write(number, rows.shape[1])
            block[first : first + len(part), : rows.shape[1]] = part
            block[first : first + len(part), rows.shape[1] :] = 0
            done += len(part)

    def _block_to_write(self, number: int, width: int) -> np.ndarray:
        old = self._blocks[number]
        if not self._own[number] or old.shape[1] < width:
            new = np.zeros((ROWS, max(width, old.shape[1])), np.float32)
            new[: len(old), : old.shape[1]] = old
            self._blocks[number], self._own[number] = new, True
        return self._blocks[number]

    def column(self, arm: int, count: int) -> np.ndarray:
        """The probabilities of an arm in the first `count` rows; 0 where it was not there yet."""
        found = np.zeros((len(self._blocks), ROWS), np.float32)
        for own, block in zip(found, self._blocks, strict=True):
            if arm < block.shape[1]:
                own[:] = block[:, arm]
        return found.ravel()[:count]

    def at(self, place: int, arm: int) -> float:
        number, row = divmod(place, ROWS)
        return float(self._blocks[number][row, arm])

    def copy(self) -> "ProbabilityRing":
        """A copy, which nobody may write to."""
        other = ProbabilityRing.__new__(ProbabilityRing)
        other._blocks, other._own = list(self._blocks), []
        self._own = [False] * len(self._own)
        return other
