"""A Parquet file in parts is the file that polars would write; its footer is read and written."""

import io

import polars as pl
import pytest

from driftbandits.service.http import thrift
from driftbandits.service.http.parquet_stream import MAGIC, ParquetStream


def table(first: int, rows: int) -> pl.DataFrame:
    numbers = range(first, first + rows)
    few = ["red" if number % 2 else "green" for number in numbers]
    some = [number / 3 if number % 3 else None for number in numbers]
    contexts = {f"context.{i}": pl.Series([float(i)] * rows, dtype=pl.Float32) for i in range(20)}
    return pl.DataFrame(
        {
            "text": pl.Series([f"né {number}" for number in numbers], dtype=pl.String),
            "few": pl.Series(few, dtype=pl.String),
            "some": pl.Series(some, dtype=pl.Float64),
            **contexts,
        }
    )


def footer_of(content: bytes) -> bytes:
    assert content[:4] == content[-4:] == MAGIC
    return content[-8 - int.from_bytes(content[-8:-4], "little") : -8]


@pytest.mark.parametrize("sizes", [[0], [1], [3, 2000, 1, 50_000], [5] * 40])
def test_parts_are_one_file(sizes: list[int]) -> None:
    stream, tables = ParquetStream(), [table(1000 * i, size) for i, size in enumerate(sizes)]
    content = b"".join([*map(stream.add, tables), stream.end()])
    whole = pl.concat(tables)
    found = pl.read_parquet(io.BytesIO(content))
    assert found.equals(whole)
    assert found.schema == whole.schema
    late = pl.col("some") > 1200  # polars looks at the places and the statistics of groups
    lazy = pl.scan_parquet(io.BytesIO(content)).filter(late).select("few", "some").collect()
    assert lazy.equals(whole.filter(late).select("few", "some"))


def test_a_footer_is_written_as_it_was_read() -> None:
    file = io.BytesIO()
    table(0, 100).write_parquet(file)
    footer = footer_of(file.getvalue())
    assert thrift.encode(thrift.Reader(footer).struct()) == footer


def test_every_type_of_a_footer_comes_back() -> None:
    inner = {1: (thrift.TRUE, True), 2: (thrift.FALSE, False), 40: (thrift.I16, -300)}
    struct = {
        3: (thrift.BYTE, 7),
        5: (thrift.DOUBLE, b"12345678"),
        6: (thrift.LIST, thrift.Elements(thrift.TRUE, [1, 2])),
        7: (thrift.LIST, thrift.Elements(thrift.STRUCT, [inner] * 20)),
        9: (thrift.I64, -(2**63)),
        10: (thrift.SET, thrift.Elements(thrift.I32, [0, 127, 128, -1])),
    }
    assert thrift.Reader(thrift.encode(struct)).struct() == struct


def test_a_map_is_refused() -> None:
    with pytest.raises(ValueError, match="no values of type 11"):
        thrift.Reader(bytes([1 << 4 | thrift.MAP])).struct()
