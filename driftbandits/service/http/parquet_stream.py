"""A Parquet file that is sent while it is written: one group of rows after the other.

Polars writes whole files only. Each table becomes a small file in memory; its rows are sent as they
are, and its footer says where they would be. The footer of the whole file, which comes last, takes
their places from there.
"""

import io

import polars as pl

from driftbandits.service.http import thrift
from driftbandits.service.http.thrift import I64, LIST, STRUCT, Elements, Struct

MAGIC = b"PAR1"
# Fields of Parquet's structs, by their numbers in its parquet.thrift.
NUM_ROWS, ROW_GROUPS = 3, 4  # of the file
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7  # of a group of rows; the ordinal is optional
CHUNK_OFFSET, CHUNK_METADATA = 2, 3  # of a column in a group
CHUNK_OFFSETS = (CHUNK_OFFSET, 4, 6)  # also of its indexes
PAGE_OFFSETS = (9, 10, 11, 14)  # of data, index, dictionary and bloom filter


class ParquetStream:
    def __init__(self) -> None:
        self._sent = 0  # bytes
        self._rows = 0
        self._footer: Struct = {}
        self._groups: list[bytes] = []

    def add(self, table: pl.DataFrame) -> bytes:
        """Returns the bytes for these rows; all tables must have the same columns."""
        file = io.BytesIO()
        table.rechunk().write_parquet(file)
        content, footer_size = file.getvalue(), int.from_bytes(file.getvalue()[-8:-4], "little")
        end = len(content) - 8 - footer_size
        footer = thrift.Reader(content[end:]).struct()
        begin = len(MAGIC) if self._sent else 0
        for group in footer[ROW_GROUPS][1].values:
            move(group, self._sent - begin)
            self._groups.append(thrift.encode(group))
        self._footer = self._footer or footer
        self._rows += table.height
        self._sent += end - begin
        return content[begin:end]

    def end(self) -> bytes:
        """The footer."""
        rows, groups = (I64, self._rows), (LIST, Elements(STRUCT, self._groups))
        footer = thrift.encode({**self._footer, NUM_ROWS: rows, ROW_GROUPS: groups})
        return footer + len(footer).to_bytes(4, "little") + MAGIC


def move(group: Struct, distance: int) -> None:
    """Moves every place in the file that a group of rows names."""
    group.pop(ORDINAL, None)
    add(group, (GROUP_OFFSET,), distance)
    for column in group[COLUMNS][1].values:
        add(column, CHUNK_OFFSETS, distance)
        if CHUNK_METADATA in column:
            add(column[CHUNK_METADATA][1], PAGE_OFFSETS, distance)


def add(struct: Struct, fields: tuple[int, ...], distance: int) -> None:
    for field in fields:
        if field in struct:
            kind, value = struct[field]
            struct[field] = kind, value + distance
