"""What the next snapshot of a bandit consists of, and which segments are no longer needed.

A snapshot holds the policy's state and the newest open decisions. All others are in segments, each
written once, and the snapshot says which of their decisions are still open. So nothing is large,
and what fails to be written is part of the next snapshot.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import contents_of
from driftbandits.agents.file_changes import Contents
from driftbandits.agents.segments import NewSegment

MOST_NEW = 128  # segments at a time, as their ids are copied: half a million of them


class NextSnapshot(NamedTuple):
    """A snapshot to write, after its new segments."""

    seq: int
    new: list[NewSegment]
    segments: set[int]  # the numbers of all of them
    contents: Contents | None  # None if more segments have to be written before


class SnapshotPlan:
    """The segments of one bandit."""

    def __init__(self, stored: Iterable[int] = (), last: Iterable[int] = ()) -> None:
        self._stored = set(stored)  # numbers that may be in the store
        self._last = set(last)  # those of the last snapshot there

    def next(self, book: DecisionBook, seq: int) -> NextSnapshot:
        """Plans the next snapshot on the engine's thread; copies only what may change."""
        blocks = book.open.blocks
        missing = [block for block in blocks if block.segment is None]
        numbers = itertools.count(max(self._stored, default=0) + 1)
        new = [
            NewSegment(number, block, block.columns.ids.copy())
            for number, block in zip(numbers, missing[:MOST_NEW], strict=False)
        ]
        self._stored.update(segment.number for segment in new)
        if len(missing) > MOST_NEW:
            return NextSnapshot(seq, new, set(), None)
        numbers_of_new = {segment.block: segment.number for segment in new}
        listed = [(block.segment or numbers_of_new[block], block.count) for block in blocks]
        about, arrays = contents_of(book, [book.open.newest])
        if blocks:
            about |= {"segments": listed}
            arrays |= {"is_open": np.concatenate([block.columns.is_open for block in blocks])}
        return NextSnapshot(seq, new, {number for number, _ in listed}, Contents(about, arrays))

    def written(self, snapshot: NextSnapshot) -> list[int]:
        """Returns the numbers of segments that neither this snapshot nor the one before needs."""
        unused = self._stored - snapshot.segments - self._last
        self._last = snapshot.segments
        return sorted(unused)

    def deleted(self, numbers: Iterable[int]) -> None:
        self._stored -= set(numbers)
