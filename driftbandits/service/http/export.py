"""A bandit's log as CSV or Parquet: one row per decision, with its outcome.

It is read and sent page by page: no more than a few thousand rows are in memory, and no page is
read for a caller that has left. Exports have threads of their own, as they may take minutes.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
import polars as pl

from driftbandits import check
from driftbandits.choice import parse
from driftbandits.logs.corrections import Corrections
from driftbandits.logs.events import FLOAT
from driftbandits.service import errors
from driftbandits.service.http.parquet_stream import ParquetStream
from driftbandits.service.http.protocol import CutOffError, Response
from driftbandits.service.store.records import BanditRow, Event, LoggedDecision
from driftbandits.service.store.store import Store

THREADS = 2
AT_ONCE = 8  # exports, which share the threads page by page
PAGE_ROWS = 2_000  # few, as reading them takes the interpreter from decisions
GROUP_ROWS = 20_000  # in Parquet, where small groups take more space
GROUP_CELLS = 500_000
TYPES = {  # of columns, by the types of a schema
    "number": pl.Float64, "cyclic": pl.Float64, "category": pl.String, "flag": pl.Boolean,
}  # fmt: skip
OUTCOMES = {"reward": "rewarded", "expiry": "expired"}
# A spreadsheet runs cells that begin with one of the first ones. The apostrophe, which prevents
# it, is itself preceded by another, so that leaving out the first one gives every text back.
ESCAPED_IN_CSV = "^[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20']"


class LogDeletedError(CutOffError):
    """The log was deleted during its export, which must be cut off."""


class Exports:
    """The exports of a worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(THREADS, "driftbandits-export")
        self._running = 0

    def start(self, row: BanditRow, kind: str) -> Response:
        if kind not in FORMATS:
            check.fail("format", f"one of {', '.join(FORMATS)}", kind)
        if self._running >= AT_ONCE:
            raise errors.too_many_exports(AT_ONCE)
        self._running += 1
        content_type, parts_of = FORMATS[kind]
        parts = parts_of(tables(self._store, row))
        name = (("content-disposition", f'attachment; filename="log.{kind}"'),)
        headers = name if kind == "parquet" else ()
        stream = Export(parts, self._threads, self._end)
        return Response(200, content_type=content_type, headers=headers, stream=stream)

    def _end(self) -> None:
        self._running -= 1

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Export:
    """A file in parts, each made on another thread when it is needed."""

    def __init__(
        self, parts: Iterator[bytes], threads: ThreadPoolExecutor, on_end: Callable[[], None]
    ) -> None:
        self._parts, self._threads, self._on_end = parts, threads, on_end
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        loop = asyncio.get_running_loop()
        part = await loop.run_in_executor(self._threads, next, self._parts, None)
        if part is None:
            raise StopAsyncIteration
        return part

    async def aclose(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_end()


def csv_parts(pages: Iterator[pl.DataFrame]) -> Iterator[bytes]:
    header = True
    for table in pages:
        yield (
            table.with_columns(escaped(name) for name in texts_in(table))
            .write_csv(include_header=header)
            .encode()
        )
        header = False


def texts_in(table: pl.DataFrame) -> list[str]:
    """The columns with texts from outside, which a spreadsheet might run."""
    given = [name for name in table.columns if name.startswith("context.")]
    named = {"id", "arm", "slate", *given} & set(table.columns)
    return [name for name in table.columns if name in named and table.schema[name] == pl.String]


def escaped(column: str) -> pl.Expr:
    text = pl.col(column)
    return pl.when(text.str.contains(ESCAPED_IN_CSV)).then("'" + text).otherwise(text).alias(column)


def parquet_parts(pages: Iterator[pl.DataFrame]) -> Iterator[bytes]:
    """Makes the first page at once, the others in groups."""
    stream, waiting, rows = ParquetStream(), list[pl.DataFrame](), 0
    for number, table in enumerate(pages):
        waiting.append(table)
        rows += table.height
        enough = min(GROUP_ROWS, GROUP_CELLS // table.width) if number else 0
        if rows >= enough:
            yield stream.add(pl.concat(waiting))
            waiting, rows = [], 0
        else:
            yield b""  # for others to have their turn
    if waiting:
        yield stream.add(pl.concat(waiting))
    yield stream.end()


FORMATS = {
    "csv": ("text/csv; charset=utf-8", csv_parts),
    "parquet": ("application/vnd.apache.parquet", parquet_parts),
}


def tables(store: Store, row: BanditRow) -> Iterator[pl.DataFrame]:
    """Yields at least one table, so that an empty log has its columns.

    A deleted bandit is marked before its log goes: what was read before the mark is complete.
    """
    names, seen, empty = list(row.config["arms"]), 0, True
    corrections = store.corrections(row.id)
    for page in store.log(row.id, PAGE_ROWS):
        if any((decision.arm or 0) >= len(names) for decision, _ in page):  # one that came later
            last = page[-1].decision.seq
            names += store.added_arms(row.id, after=seen, until=last)
            seen = last
        check_kept(store, row)
        yield table_of(page, names, row.config, corrections)
        empty = False
    check_kept(store, row)
    if empty:
        yield table_of([], names, row.config, corrections)


def check_kept(store: Store, row: BanditRow) -> None:
    if not store.is_kept(row.id):
        raise LogDeletedError(f"bandit {row.name!r} was deleted while its log was being sent")


def table_of(
    page: list[LoggedDecision], arms: list[str], config: dict[str, Any], corrections: Corrections
) -> pl.DataFrame:
    corrected = [corrections.get(decision.id) for decision, _ in page]
    decisions = [decision for decision, _ in page]
    outcomes = [outcome for _, outcome in page]
    columns = {
        "id": pl.Series([d.id for d in decisions], dtype=pl.String),
        "time": pl.Series([d.time for d in decisions], dtype=pl.Float64),
        **context_columns(decisions, config),
        "arm": pl.Series([arms[d.arm or 0] for d in decisions], dtype=pl.String),
        "probability": pl.Series([d.probability for d in decisions], dtype=pl.Float64),
        "reward": numbers_of(outcomes, "reward"),
        "rewarded_at": numbers_of(outcomes, "time"),
        "status": pl.Series([OUTCOMES[o.kind] if o else "open" for o in outcomes], dtype=pl.String),
        "corrected_reward": numbers_of(corrected, "reward"),
        "corrected_at": numbers_of(corrected, "time"),
        "slate": pl.Series([d.slate for d in decisions], dtype=pl.String),
        "place": pl.Series([d.place for d in decisions], dtype=pl.Int16),
    }
    return pl.DataFrame(columns)


def context_columns(decisions: list[Event], config: dict[str, Any]) -> dict[str, pl.Series]:
    """The context of each decision; with features of arms, also those that it brought as JSON."""
    context, features = config["context"], config.get("features", [])
    if not features and not isinstance(context, dict):
        numbers = np.frombuffer(b"".join(d.context or b"" for d in decisions), FLOAT)
        numbers = numbers.reshape(len(decisions), len(context))
        return {f"context.{name}": pl.Series(numbers[:, i]) for i, name in enumerate(context)}
    found = [json.loads(d.context or b"{}") for d in decisions]
    contexts = [each.get("context", {}) for each in found]
    if isinstance(context, dict):
        columns = {
            f"context.{name}": pl.Series([each.get(name) for each in contexts], dtype=TYPES[kind])
            for name, kind in kinds_of(context).items()
        }
    else:
        numbers = np.array(contexts, FLOAT).reshape(len(decisions), len(context))
        columns = {f"context.{name}": pl.Series(numbers[:, i]) for i, name in enumerate(context)}
    if features:
        own = [json.dumps(each["arms"]) if "arms" in each else None for each in found]
        columns["own_arms"] = pl.Series(own, dtype=pl.String)
    return columns


def kinds_of(schema: dict[str, str]) -> dict[str, str]:
    """The types of a schema by name: number, category, cyclic or flag."""
    return {name: parse(name, text).name for name, text in schema.items()}


def numbers_of(events: list[Event | None], field: str) -> pl.Series:
    found = [None if event is None else getattr(event, field) for event in events]
    return pl.Series(found, dtype=pl.Float64)
