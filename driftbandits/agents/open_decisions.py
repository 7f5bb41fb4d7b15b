"""Decisions that wait for their rewards, oldest first: in blocks of rows, the old ones on disk.

Those that came alone, a few of the last ones, are in a dict: many have their reward before they
would need a row.

Every decision has a number, in their order, and its row is found by it. Nothing here takes long,
however many are open: a full block is followed by a new one, neighbours that fit into one block are
joined, and of a policy that has grown, tickets are brought into their new shape when they are read.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from driftbandits.agents.decision_block import (
    TYPES,
    Block,
    Columns,
    MadeDecisions,
    OpenDecision,
    RecentDecision,
    empty_block,
    joined,
)
from driftbandits.agents.id_index import IdIndex
from driftbandits.agents.packed_tickets import WORD
from driftbandits.agents.probabilities import computed
from driftbandits.agents.spill_file import SpillFile
from driftbandits.agents.wide_tables import InFile, InMemory

FIRST_ROWS, MOST_ROWS, LEAST_ROWS = 64, 4096, 16  # of a block
BLOCK_BYTES = 2**21  # of the tickets and probabilities of a block, about
RECENT = 64  # decisions in the dict
AT_ONCE = 3  # blocks that go to the file together
MEMORY_BYTES = 2**26  # of those that are kept in memory; older ones go to a file


class OpenDecisions(Mapping[str, OpenDecision]):
    """Open decisions by id, in their order."""

    def __init__(self, width: int, slots: int, folder: Path | None = None) -> None:
        """Takes tickets of that width and so many slots for arms; `folder` is for the file."""
        self._index, self._next = IdIndex(), 0
        self._folder = folder
        self._file: SpillFile | None = None  # it is made when it is needed
        self._growth: dict[int, tuple[int, Callable[[np.ndarray], np.ndarray]]] = {}  # by slots
        self._full: list[Block] = []
        self._firsts: list[int] = []  # their first numbers
        self._memory: list[Block] = []  # those of them that are not in the file
        self._recent: dict[str, RecentDecision] = {}  # newer than those in blocks
        self._shape(width, slots)
        self._newest = self._new_block()

    @property
    def newest(self) -> Block:
        """The newest block, with single decisions added."""
        self._file_recent()
        return self._newest

    @property
    def blocks(self) -> list[Block]:
        """The full blocks, oldest first."""
        self._file_recent()
        return self._full

    def _shape(self, width: int, slots: int) -> None:
        self.width, self.slots = width, slots
        row_bytes = WORD().itemsize * (width + slots)
        self.block_rows = min(max(BLOCK_BYTES // row_bytes, LEAST_ROWS), MOST_ROWS)

    def _new_block(self) -> Block:
        return empty_block(min(FIRST_ROWS, self.block_rows), self.width, self.slots)

    # Looking

    def __len__(self) -> int:
        return len(self._recent) + len(self._index)

    def __contains__(self, id: object) -> bool:
        return id in self._recent or id in self._index.part_of(id)  # type: ignore[arg-type]

    def __getitem__(self, id: str) -> OpenDecision:
        if id in self._recent:
            return self._recent[id].decision
        number = self._index.part_of(id)[id]
        block = self._block_of(number)
        return block.decision(block.row_of(number))

    def __iter__(self) -> Iterator[str]:
        for block in self.all_blocks():
            yield from block.open_ids()

    def all_blocks(self) -> Iterator[Block]:
        self._file_recent()
        yield from self._full
        if self._newest.open:
            yield self._newest

    def _block_of(self, number: int) -> Block:
        if number >= self._newest.first:
            return self._newest
        return self._full[bisect_right(self._firsts, number) - 1]

    def _by_block(self, numbers: list[int]) -> Iterator[tuple[Block, list[int]]]:
        """Groups numbers by block, with their places."""
        places: dict[Block, list[int]] = {}
        for place, number in enumerate(numbers):
            places.setdefault(self._block_of(number), []).append(place)
        yield from places.items()

    def tickets_of(self, ids: Sequence[str]) -> np.ndarray:
        """Tickets in today's shape."""
        if len(ids) == 1 and ids[0] in self._recent:
            return self._recent[ids[0]].ticket[None]
        self._file_recent()
        numbers, newest = self._index.numbers(ids), self._newest
        if ids and min(numbers) >= newest.first:  # most are there
            return newest.tables.tickets_at(newest.rows_of(numbers))
        found = np.zeros((len(ids), self.width), WORD)
        for block, places in self._by_block(numbers):
            tickets = block.tables.tickets_at(block.rows_of([numbers[place] for place in places]))
            found[places] = self.reshaped(tickets, block.slots)
        return found

    @property
    def first_time(self) -> float | None:
        """The time of the oldest open decision."""
        every = chain(self._full, (self._newest,))
        blocks = (block.first_time for block in every if block.open)
        recent = (decision.time for decision, _ in self._recent.values())
        return next(chain(blocks, recent), None)

    def until(self, time: float, limit: int) -> list[str]:
        """Decisions made at that time or before, at most so many."""
        oldest = self.first_time
        if oldest is None or oldest > time:
            return []
        ids: list[str] = []
        for block in self.all_blocks():
            rows = block.open_rows()
            count = int(np.searchsorted(block.columns.times[rows], time, "right"))
            ids += block.columns.ids[rows[: min(count, limit - len(ids))]].tolist()
            if count < len(rows) or len(ids) == limit:
                break
        return ids

    def oldest(self, count: int) -> list[str]:
        return self.until(np.inf, count) if count > 0 else []

    # Changing

    def add_one(self, id: str, decision: OpenDecision, ticket: np.ndarray) -> None:
        """Adds one decision, which must not be open already."""
        if len(self._recent) >= RECENT:
            self._file_recent()
        self._recent[id] = RecentDecision(decision, ticket)

    def _file_recent(self) -> None:
        """Gives rows to single decisions."""
        if not self._recent:
            return
        recent = self._recent
        for decision, _ in recent.values():
            computed(decision.source)  # whatever fails here changes nothing
        self._recent = {}
        for id, (decision, ticket) in recent.items():
            arms = np.array([decision.arm], TYPES.arms)
            made = MadeDecisions(arms, decision.probabilities[None], ticket[None])
            self._add([id], decision.time, made)

    def add(self, ids: list[str], time: float, made: MadeDecisions) -> None:
        """Adds decisions, none of which may be open already."""
        self._file_recent()
        self._add(ids, time, made)

    def _add(self, ids: list[str], time: float, made: MadeDecisions) -> None:
        if len(ids) <= self._room():
            self._fill(ids, time, made)
            return
        first, (arms, laws, tickets) = 0, made
        while first < len(ids):
            part = slice(first, first + self._room())
            its_laws = laws[part] if len(laws) > 1 else laws
            self._fill(ids[part], time, MadeDecisions(arms[part], its_laws, tickets[part]))
            first = part.stop

    def _fill(self, ids: list[str], time: float, made: MadeDecisions) -> None:
        first = self._next
        self._next += len(ids)
        self._newest.append(first, ids, time, made)
        self._index.add(ids, range(first, self._next))

    def _room(self) -> int:
        """Makes room; returns how many rows the newest block has left."""
        newest = self._newest
        if newest.count == newest.capacity:
            if 2 * newest.open <= newest.capacity:
                self._newest = joined([newest], self.reshaped, self.slots)
                self._newest.grow(newest.capacity)
            elif newest.capacity < self.block_rows:
                newest.grow(min(2 * newest.capacity, self.block_rows))
            else:
                self._seal_newest()
        return self._newest.capacity - self._newest.count

    def _seal_newest(self) -> None:
        newest, self._newest = self._newest, self._new_block()
        self._newest.first = self._next
        if newest.open:
            newest.seal()
            self._append(newest)

    def _append(self, block: Block) -> None:
        """Appends a full block, newer than the others."""
        self._full.append(block)
        self._firsts.append(block.first)
        self._keep(block)

    def load(self, columns: Columns, tables: InMemory, segment: int | None = None) -> None:
        """Loads the next block of a file: a full one, which may be in the store, or the newest.

        Their tickets must be of today's shape. An id that is there twice is a ValueError.
        """
        self._file_recent()
        count = len(columns.ids)
        columns.numbers[:] = np.arange(self._next, self._next + count)
        block = Block(columns, tables, self.slots, count)
        ids = block.open_ids()
        if len(set(ids)) < len(ids) or any(id in self for id in ids):
            raise ValueError("an id is there twice")
        self._index.add(ids, columns.numbers[block.open_rows()].tolist())
        self._next += count
        self._seal_newest()
        if segment is None and count < self.block_rows:
            self._newest = block
            block.grow(min(max(2 * count, FIRST_ROWS), self.block_rows))
        elif block.open:
            block.segment = segment
            self._append(block)

    def remove(self, ids: Sequence[str]) -> None:
        if len(ids) == 1 and ids[0] in self._recent:
            del self._recent[ids[0]]
            return
        self._file_recent()
        numbers, newest = self._index.pop(ids), self._newest
        if ids and min(numbers) >= newest.first:
            newest.close(newest.rows_of(numbers), len(numbers))
            if not newest.open:
                newest.clear()
            return
        by_block = list(self._by_block(numbers))
        for block, places in by_block:
            block.close(block.rows_of([numbers[place] for place in places]), len(places))
        for block, _ in by_block:
            if block is not newest:
                self._join(block)
            elif not block.open:
                block.clear()

    def _join(self, block: Block) -> None:
        """Joins a half-empty block with a neighbour if both fit into one."""
        place = bisect_right(self._firsts, block.first) - 1
        if 2 * block.open > self.block_rows or self._full[place] is not block:  # it was joined
            return
        if not block.open:
            self._replace(slice(place, place + 1), [])
            return
        for pair in (slice(max(place - 1, 0), place + 1), slice(place, place + 2)):
            both = self._full[pair]
            if len(both) == 2 and both[0].open + both[1].open <= self.block_rows:
                block = joined(both, self.reshaped, self.slots)
                self._replace(pair, [block])
                self._join(block)
                return

    def _replace(self, places: slice, blocks: list[Block]) -> None:
        gone = self._full[places]
        self._full[places] = blocks
        self._firsts[places] = [block.first for block in blocks]
        self._memory = [block for block in self._memory if block not in gone]
        for block in blocks:
            self._keep(block)

    def _keep(self, block: Block) -> None:
        """Keeps a block in memory, and moves an older one to the file if there are too many."""
        self._memory.append(block)
        for _ in range(AT_ONCE):  # after a full disk there may be many
            if sum(each.tables.nbytes for each in self._memory) <= MEMORY_BYTES:
                return
            oldest = self._memory[0]
            assert isinstance(oldest.tables, InMemory)
            try:
                self._file = self._file or SpillFile(self._folder)
                oldest.tables = InFile(oldest.tables, self._file)
            except OSError:  # the disk is full: they stay where they are
                return
            del self._memory[0]

    @property
    def bytes_on_disk(self) -> int:
        return self._file.bytes_on_disk if self._file else 0

    # Growing

    def grow(self, reshape: Callable[[np.ndarray], np.ndarray], width: int, slots: int) -> None:
        """Adds slots for arms; `reshape` brings tickets into their new shape."""
        self._file_recent()
        self._growth[self.slots] = slots, reshape
        self._shape(width, slots)
        self._seal_newest()

    def reshaped(self, tickets: np.ndarray, slots: int) -> np.ndarray:
        """Reshapes tickets with so many slots to today's shape."""
        while slots != self.slots:
            slots, reshape = self._growth[slots]
            tickets = reshape(tickets)
        return tickets
