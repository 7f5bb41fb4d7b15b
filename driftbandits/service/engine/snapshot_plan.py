"""What the next snapshot of a bandit consists of, and which segments nobody needs any more.

A snapshot holds the policy's state and the newest open decisions. All others are in segments, each
written once, and the snapshot says which of their decisions are still open. So nothing is large,
and what fails to be written is part of the next snapshot.
"""

from collections.abc import Iterable
from typing import NamedTuple

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import contents_of
from driftbandits.agents.file_changes import Contents
from driftbandits.agents.segments import NewSegment, open_rows


class NextSnapshot(NamedTuple):
    """A snapshot that is to be written, after its new segments."""

    seq: int
    contents: Contents
    new: list[NewSegment]
    segments: set[int]  # the numbers of all of them


class SnapshotPlan:
    """The segments of one bandit."""

    def __init__(self, stored: Iterable[int] = (), last: Iterable[int] = ()) -> None:
        self._stored = set(stored)  # numbers that may be in the store
        self._last = set(last)  # those of the last snapshot there

    def next(self, book: DecisionBook, seq: int) -> NextSnapshot:
        """On the engine's thread: only what may change is copied."""
        new: list[NewSegment] = []
        listed: list[tuple[int, int]] = []
        number = max(self._stored, default=0)
        for block in book.open.blocks:
            if block.segment is None:
                number += 1
                new.append(NewSegment(number, block, block.columns.ids.copy()))
            listed.append((block.segment or number, block.count))
        segments = {each for each, _ in listed}
        self._stored |= segments
        about, arrays = contents_of(book, [book.open.newest])
        if listed:
            about |= {"segments": listed}
            arrays |= {"open_rows": open_rows(book.open.blocks)}
        return NextSnapshot(seq, Contents(about, arrays), new, segments)

    def written(self, snapshot: NextSnapshot) -> list[int]:
        """Gives the numbers of segments that neither this snapshot nor the one before needs."""
        unused = self._stored - snapshot.segments - self._last
        self._last = snapshot.segments
        return sorted(unused)

    def deleted(self, numbers: Iterable[int]) -> None:
        self._stored -= set(numbers)
