"""A bandit's log as CSV or Parquet: one row per decision, with its outcome."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from driftbandits.logs.events import FLOAT
from driftbandits.service import errors
from driftbandits.service.http.protocol import Response
from driftbandits.service.store.records import BanditRow, LoggedDecision
from driftbandits.service.store.store import Store

READ_BYTES = 1 << 20
OUTCOMES = {"reward": "rewarded", "expiry": "expired"}


async def log_response(store: Store, row: BanditRow, kind: str) -> Response:
    if kind == "csv":
        return Response(200, content_type="text/csv; charset=utf-8", stream=csv_parts(store, row))
    if kind != "parquet":
        raise errors.bad_value(f"format must be one of csv, parquet, got {kind!r}")
    return Response(
        200,
        content_type="application/vnd.apache.parquet",
        headers=(("content-disposition", 'attachment; filename="log.parquet"'),),
        stream=parquet_parts(store, row),
    )


async def csv_parts(store: Store, row: BanditRow) -> AsyncGenerator[bytes, None]:
    pages, header = tables(store, row), True
    while (table := await asyncio.to_thread(next, pages, None)) is not None:
        yield table.write_csv(include_header=header).encode()
        header = False


async def parquet_parts(store: Store, row: BanditRow) -> AsyncGenerator[bytes, None]:
    """Streams a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        path = await asyncio.to_thread(write_parquet, store, row, Path(folder))
        with path.open("rb") as file:
            while part := await asyncio.to_thread(file.read, READ_BYTES):
                yield part


def write_parquet(store: Store, row: BanditRow, folder: Path) -> Path:
    """Writes a small file per page, then joins them, so that memory stays bounded."""
    for number, table in enumerate(tables(store, row)):
        table.write_parquet(folder / f"{number:08}.parquet")
    target = folder / "log"
    pl.scan_parquet(sorted(folder.glob("*.parquet"))).sink_parquet(target)
    return target


def tables(store: Store, row: BanditRow) -> Iterator[pl.DataFrame]:
    """At least one, so that an empty log has its columns."""
    initial = list(row.config["arms"])
    names, empty = initial + store.added_arms(row.id), True
    for page in store.log(row.id):
        if any((decision.arm or 0) >= len(names) for decision, _ in page):
            names = initial + store.added_arms(row.id)  # one was added while the log was read
        yield table_of(page, names, row.config["context"])
        empty = False
    if empty:
        yield table_of([], names, row.config["context"])


def table_of(page: list[LoggedDecision], arms: list[str], context: list[str]) -> pl.DataFrame:
    decisions = [decision for decision, _ in page]
    outcomes = [outcome for _, outcome in page]
    numbers = np.frombuffer(b"".join(d.context or b"" for d in decisions), FLOAT)
    numbers = numbers.reshape(len(decisions), len(context))
    columns = {
        "id": pl.Series([d.id for d in decisions], dtype=pl.String),
        "time": pl.Series([d.time for d in decisions], dtype=pl.Float64),
        **{f"context.{name}": pl.Series(numbers[:, i]) for i, name in enumerate(context)},
        "arm": pl.Series([arms[d.arm or 0] for d in decisions], dtype=pl.String),
        "probability": pl.Series([d.probability for d in decisions], dtype=pl.Float64),
        "reward": pl.Series([o.reward if o else None for o in outcomes], dtype=pl.Float64),
        "rewarded_at": pl.Series([o.time if o else None for o in outcomes], dtype=pl.Float64),
        "status": pl.Series([OUTCOMES[o.kind] if o else "open" for o in outcomes], dtype=pl.String),
    }
    return pl.DataFrame(columns)
