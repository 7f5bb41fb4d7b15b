"""Snapshots by their size: a whole one, then what changes, until the changes are as large.

Then they are merged into a whole one, in the background. So what is written per event, and what the
engine's thread has to copy, is bounded, however many decisions are open.
"""

from collections.abc import Iterable
from typing import NamedTuple

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import contents_of
from driftbandits.agents.file_changes import Contents
from driftbandits.service.store.records import Event

CLOSING = ("reward", "expiry")


class Base(NamedTuple):
    """A whole snapshot that is in the store."""

    seq: int
    size: int  # bytes
    slots: int  # of arms: tickets have another width with more


class NextSnapshot(NamedTuple):
    """A snapshot that is to be written."""

    seq: int
    contents: Contents
    base: int | None  # seq of the whole snapshot that this one holds the changes of
    slots: int


class SnapshotChain:
    """The snapshots of one bandit, and what has changed since the last one."""

    def __init__(self, base: Base | None = None, changed: int = 0) -> None:
        self._base = base
        self._changed = changed  # bytes of all changes since the base
        self._opened: dict[str, None] = {}  # since the last snapshot, and still open
        self._closed: list[str] = []  # of those that were open then

    def note(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == "decision":
                self._opened[event.id] = None
            elif event.kind in CLOSING:
                if event.id in self._opened:
                    del self._opened[event.id]
                else:
                    self._closed.append(event.id)

    def next(self, book: DecisionBook, seq: int) -> NextSnapshot:
        """All of a book, as copies, or what has changed."""
        base, slots = self._base, book.arms.slots
        opened, closed = self._opened, self._closed
        self._opened, self._closed = {}, []
        few_open = len(book.open.waiting) <= len(opened) + len(closed)  # a whole one is no larger
        if base is None or base.slots != slots or few_open:
            return NextSnapshot(seq, contents_of(book), None, slots)
        about, arrays = contents_of(book, opened)
        return NextSnapshot(seq, Contents({**about, "closed": closed}, arrays), base.seq, slots)

    def written(self, snapshot: NextSnapshot, size: int) -> None:
        if snapshot.base is None:
            self._base, self._changed = Base(snapshot.seq, size, snapshot.slots), 0
        else:
            self._changed += size

    def merged(self, seq: int, size: int) -> None:
        """The base and all changes are one whole snapshot."""
        assert self._base
        self._base, self._changed = Base(seq, size, self._base.slots), 0

    @property
    def is_long(self) -> bool:
        """Whether the changes are as large as what they change."""
        return self._base is not None and self._changed > self._base.size

    def broken(self) -> None:
        """The last snapshot is not in the store: the next one must be whole."""
        self._base = None
