"""Full blocks of open decisions as a store keeps them: each is written once, as a segment.

What is closed afterwards is noted in the snapshots, with one bit for each row of a segment.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from driftbandits.agents.decision_block import TYPES, Block, Columns
from driftbandits.agents.decision_book import DecisionBook, spec_of
from driftbandits.agents.file_bytes import packed, unpacked
from driftbandits.agents.file_changes import Contents
from driftbandits.agents.file_checks import check_segment, check_tickets, must
from driftbandits.agents.growth import rows_grown
from driftbandits.agents.learner import ticket_layout
from driftbandits.agents.wide_tables import InMemory

Read = Callable[[int], bytes]  # the segment with that number
STORED = ("arms", "times", "sizes", "laws")  # columns


class NewSegment(NamedTuple):
    """A block that is not in the store yet."""

    number: int
    block: Block
    ids: np.ndarray  # of the moment, as its own are forgotten when they are closed


def packed_segment(new: NewSegment) -> bytes:
    """Packs a segment, on any thread: a full block does not change."""
    columns, tables = new.block.columns._asdict(), new.block.tables.loaded()
    about = {"slots": new.block.slots, "ids": new.ids.tolist()}
    return packed(Contents(about, {key: columns[key] for key in STORED} | tables._asdict()))


def packed_snapshot(contents: Contents) -> bytes:
    """Packs a snapshot with one bit for each row of its segments."""
    about, arrays = contents
    if "is_open" in arrays:
        arrays = arrays | {"is_open": np.packbits(arrays["is_open"])}
    return packed(Contents(about, arrays))


def load_segments(book: DecisionBook, about: dict[str, Any], bits: np.ndarray, read: Read) -> None:
    """Loads the decisions that a snapshot says are open."""
    first, last_time = 0, -np.inf
    are_open = np.unpackbits(bits, count=sum(rows for _, rows in about["segments"])).astype(bool)
    for number, rows in about["segments"]:
        is_open = are_open[first : first + rows].copy()
        _, contents = unpacked(read(number), f"segment {number}")
        columns, tables = block_of(contents, is_open, book)
        must(last_time <= columns.times[0], "a segment is out of order")
        last_time = columns.times[-1]
        book.open.load(columns, tables, number)
        first += rows
    must(last_time <= book.now, "a decision is out of order")


def block_of(
    contents: Contents, is_open: np.ndarray, book: DecisionBook
) -> tuple[Columns, InMemory]:
    """Makes a block from a segment, with tickets in today's shape."""
    about, arrays = contents
    check_segment(about, arrays, is_open, len(book.arms.names))
    ids = np.array([None] * len(is_open), object)
    ids[is_open] = np.array(about["ids"], object)[is_open]
    numbers = np.zeros(len(is_open), TYPES.numbers)
    columns = Columns(numbers, ids, is_open, **{key: arrays[key] for key in STORED})
    must(len(arrays["tickets"]) == len(is_open), "its tickets do not fit its decisions")
    tickets = todays_tickets(book, arrays["tickets"], about["slots"])
    return columns, InMemory(tickets, arrays["probabilities"])


def todays_tickets(book: DecisionBook, tickets: np.ndarray, slots: int) -> np.ndarray:
    """Reshapes tickets to today's slots, which double whenever a policy grows."""
    settings = book.settings
    layout = ticket_layout(settings.policy, spec_of(settings, slots))
    check_tickets(tickets, layout, len(tickets))
    while slots < book.arms.slots:
        wider = ticket_layout(settings.policy, spec_of(settings, 2 * slots))
        tickets = rows_grown(tickets, layout, wider, slots, slots)
        layout, slots = wider, 2 * slots
    must(slots == book.arms.slots, "its slots do not fit its arms")
    return tickets
