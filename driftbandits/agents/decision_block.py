"""Decisions that were made one after the other, in columns; what is closed leaves a hole.

The newest block is filled row by row. The others are full and never change, but that decisions are
closed: so a snapshot may read them while others are decided.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandits.agents.packed_tickets import WORD
from driftbandits.agents.probabilities import Probabilities, computed
from driftbandits.agents.wide_tables import FLOAT, InMemory, WideTables

Rows = np.ndarray | slice
Reshape = Callable[[np.ndarray, int], np.ndarray]  # tickets for so many slots as those of today


class OpenDecision(NamedTuple):
    """A decision that waits for its reward."""

    arm: int
    source: Probabilities
    time: float

    @property
    def probabilities(self) -> np.ndarray:
        """(arms of the moment,) float32"""
        return computed(self.source)


class RecentDecision(NamedTuple):
    """An open decision that is not in a block yet."""

    decision: OpenDecision
    ticket: np.ndarray  # (words,) uint32


class MadeDecisions(NamedTuple):
    """What a policy has decided."""

    arms: np.ndarray  # (n,) int32
    probabilities: np.ndarray  # (n, arms), or (1, arms) where all have the same; float32
    tickets: np.ndarray  # (n, words) uint32


class Columns(NamedTuple):
    """What every decision has, in arrays of one length."""

    numbers: np.ndarray  # uint32, ascending
    ids: np.ndarray  # str, None where it is closed
    is_open: np.ndarray  # bool
    arms: np.ndarray  # int32
    times: np.ndarray  # float64
    sizes: np.ndarray  # int32: how many arms there were
    laws: np.ndarray  # uint16: which probabilities, as many decisions have the same


class Types(NamedTuple):
    """Those of the columns."""

    numbers: np.dtype = np.dtype(np.uint32)
    ids: np.dtype = np.dtype(object)
    is_open: np.dtype = np.dtype(bool)
    arms: np.dtype = np.dtype(np.int32)
    times: np.dtype = np.dtype(np.float64)
    sizes: np.dtype = np.dtype(np.int32)
    laws: np.dtype = np.dtype(np.uint16)


TYPES = Types()


class Block:
    def __init__(self, columns: Columns, tables: WideTables, slots: int, count: int) -> None:
        self.columns, self.tables = columns, tables
        self.slots = slots  # for arms: tickets and probabilities have another width with more
        self.count = count  # rows in use
        self.first = int(columns.numbers[0])
        self.open = int(np.count_nonzero(columns.is_open[:count]))
        self.segment: int | None = None  # its number in the store, if it is there
        self.law_count = len(tables.probabilities) if isinstance(tables, InMemory) else 0
        self._last_law = b""
        self._is_dense = not count or int(columns.numbers[count - 1]) == self.first + count - 1

    # Filling the newest one

    @property
    def capacity(self) -> int:
        return len(self.columns.ids)

    def append(self, first: int, ids: list[str], time: float, made: MadeDecisions) -> None:
        """Appends decisions, numbered from `first`; there must be room."""
        assert isinstance(self.tables, InMemory)
        columns, (arms, laws, tickets), count = self.columns, made, len(ids)
        if not self.count:
            self.first = first
        elif first != self.first + self.count:  # those in between were closed
            self._is_dense = False
        rows: Any = slice(self.count, self.count + count)
        numbers: Any = range(first, first + count)
        values: Any = ids
        if count == 1:  # most come alone, and NumPy is quicker without slices
            rows, numbers, values = self.count, first, ids[0]
            arms, tickets = arms[0], tickets[0]
        columns.numbers[rows] = numbers
        columns.ids[rows] = values
        columns.is_open[rows] = True
        columns.arms[rows] = arms
        columns.times[rows] = time
        columns.sizes[rows] = laws.shape[1]
        columns.laws[rows] = self._law_numbers(laws)
        self.tables.tickets[rows] = tickets
        self.count += count
        self.open += count

    def _law_numbers(self, laws: np.ndarray) -> np.ndarray | int:
        """Stores probabilities, unless they are equal to the last ones."""
        if len(laws) > 1:
            self._last_law = b""
            return np.arange(*self._keep(laws), dtype=TYPES.laws)
        content = laws.tobytes()
        if content != self._last_law:
            self._keep(laws)
            self._last_law = content
        return self.law_count - 1

    def _keep(self, laws: np.ndarray) -> tuple[int, int]:
        """Stores probabilities; returns where they start and end."""
        assert isinstance(self.tables, InMemory)
        first, last = self.law_count, self.law_count + len(laws)
        table = self.tables.probabilities
        if last > len(table):
            table = longer(table, min(max(2 * len(table), last), self.capacity))
            self.tables = self.tables._replace(probabilities=table)
        table[first:last, : laws.shape[1]] = laws
        self.law_count = last
        return first, last

    def grow(self, capacity: int) -> None:
        assert isinstance(self.tables, InMemory)
        self.columns = Columns(*(longer(column, capacity) for column in self.columns))
        self.tables = self.tables._replace(tickets=longer(self.tables.tickets, capacity))

    def seal(self) -> None:
        """Seals the block: nothing is appended from now on."""
        assert isinstance(self.tables, InMemory)
        self.columns = Columns(*(column[: self.count].copy() for column in self.columns))
        tickets, laws = self.tables
        self.tables = InMemory(tickets[: self.count].copy(), laws[: self.law_count].copy())

    def clear(self) -> None:
        """Empties the block, in which nothing is open."""
        self.count = self.law_count = 0
        self._is_dense = True
        self._last_law = b""

    # Its decisions

    def row_of(self, number: int) -> int:
        """The row of a decision in this block."""
        if self._is_dense:
            return number - self.first
        return int(np.searchsorted(self.columns.numbers[: self.count], number))

    def rows_of(self, numbers: list[int]) -> Rows:
        if len(numbers) == 1:
            row = self.row_of(numbers[0])
            return slice(row, row + 1)
        wanted = np.array(numbers, TYPES.numbers)
        if self._is_dense:
            return wanted - TYPES.numbers.type(self.first)
        return np.searchsorted(self.columns.numbers[: self.count], wanted)

    def decision(self, row: int) -> OpenDecision:
        columns = self.columns
        probabilities = self.tables.probabilities_at(int(columns.laws[row]))[: columns.sizes[row]]
        return OpenDecision(int(columns.arms[row]), probabilities, float(columns.times[row]))

    def close(self, rows: Rows, count: int) -> None:
        self.columns.is_open[rows] = False
        self.columns.ids[rows] = None
        self.open -= count

    @property
    def first_time(self) -> float:
        """The time of its oldest open decision."""
        return float(self.columns.times[self.columns.is_open.argmax()])

    def open_rows(self) -> np.ndarray:
        return np.flatnonzero(self.columns.is_open[: self.count])

    def open_ids(self) -> list[str]:
        return self.columns.ids[self.open_rows()].tolist()


def longer(table: np.ndarray, length: int) -> np.ndarray:
    found = np.zeros((length, *table.shape[1:]), table.dtype)
    found[: len(table)] = table
    return found


def empty_block(rows: int, width: int, slots: int) -> Block:
    columns = Columns(*(np.zeros(rows, dtype) for dtype in TYPES))
    tables = InMemory(np.zeros((rows, width), WORD), np.zeros((0, slots), FLOAT))
    return Block(columns, tables, slots, count=0)


def joined(blocks: Sequence[Block], reshape: Reshape, slots: int) -> Block:
    """The open decisions of several blocks as one."""
    columns, tickets, laws, count = [], [], [], 0
    for block in blocks:
        rows, tables = block.open_rows(), block.tables.loaded()
        used, numbers = np.unique(block.columns.laws[rows], return_inverse=True)
        its_own = Columns(*(column[rows] for column in block.columns))
        columns.append(its_own._replace(laws=(numbers + count).astype(TYPES.laws)))
        tickets.append(reshape(tables.tickets[rows], block.slots))
        laws.append(np.zeros((len(used), slots), FLOAT))
        laws[-1][:, : tables.probabilities.shape[1]] = tables.probabilities[used]
        count += len(used)
    together = Columns(*map(np.concatenate, zip(*columns, strict=True)))
    tables = InMemory(np.concatenate(tickets), np.concatenate(laws))
    return Block(together, tables, slots, count=len(together.ids))
