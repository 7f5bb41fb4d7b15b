"""Open decisions as files list them: an entry and a ticket each, probabilities in one row."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandits.agents.decision_block import TYPES, Block, Columns
from driftbandits.agents.open_decisions import OpenDecisions
from driftbandits.agents.packed_tickets import WORD
from driftbandits.agents.wide_tables import FLOAT, InMemory


class FileRows(NamedTuple):
    entries: list[list[Any]]  # id, arm, number of arms, time
    probabilities: np.ndarray  # of all, one after the other
    tickets: np.ndarray


def rows_of(open: OpenDecisions, blocks: Iterable[Block]) -> FileRows:
    """Copies of the open decisions of some blocks."""
    entries: list[list[Any]] = []
    probabilities, tickets = [np.zeros(0, FLOAT)], [np.zeros((0, open.width), WORD)]
    for block in blocks:
        rows, columns, tables = block.open_rows(), block.columns, block.tables.loaded()
        sizes = columns.sizes[rows]
        lists = (columns.ids[rows], columns.arms[rows], sizes, columns.times[rows])
        entries += map(list, zip(*(each.tolist() for each in lists), strict=True))
        table = tables.probabilities[columns.laws[rows]]
        probabilities.append(table[np.arange(table.shape[1]) < sizes[:, None]])
        tickets.append(open.reshaped(tables.tickets[rows], block.slots))
    return FileRows(entries, np.concatenate(probabilities), np.concatenate(tickets))


def load_rows(open: OpenDecisions, rows: FileRows) -> None:
    """Loads decisions, which are the newest ones."""
    first_law = 0
    for first in range(0, len(rows.entries), open.block_rows):
        part = slice(first, first + open.block_rows)
        ids, arms, sizes, times = zip(*rows.entries[part], strict=True)
        last_law = first_law + sum(sizes)
        table = np.zeros((len(ids), open.slots), FLOAT)
        table[np.arange(open.slots) < np.array(sizes)[:, None]] = rows.probabilities[
            first_law:last_law
        ]
        first_law = last_law
        is_new = np.append(True, np.any(table[1:] != table[:-1], axis=1))
        columns = Columns(
            numbers=np.zeros(len(ids), TYPES.numbers),
            ids=np.array(ids, object),
            is_open=np.ones(len(ids), bool),
            arms=np.array(arms, TYPES.arms),
            times=np.array(times, TYPES.times),
            sizes=np.array(sizes, TYPES.sizes),
            laws=(np.cumsum(is_new) - 1).astype(TYPES.laws),
        )
        open.load(columns, InMemory(rows.tickets[part].copy(), table[is_new]))
