"""Reading tables of rewards: CSV, Parquet, or a data set that comes with the package river.

A table has a row per step and named columns of numbers. Among the environments only this module
needs Polars, so it is imported when a table is read.
"""

import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandits import check
from driftbandits.environments.table_file import RIVER, Table, path_of

Columns = str | list[str] | None  # a prefix of names, names, or the table's default


class Frame(NamedTuple):
    """Columns, and which of them are contexts by default."""

    columns: pl.DataFrame
    context: list[str]


def read_table(file: str, arms: Columns = None, context: Columns = None) -> Table:
    """The arms' rewards and the contexts, row by row."""
    frame = read_frame(file)
    names = frame.columns.columns
    context_names = frame.context if context is None else chosen("context", context, names)
    if arms is None:
        rest = [name for name in names if name not in context_names]
        arm_names = [name for name in rest if holds_numbers(frame.columns[name])]
    else:
        arm_names = chosen("arms", arms, names)
    if not arm_names:
        check.fail("arms", "at least one column of numbers", names)
    if twice := [name for name in arm_names if name in context_names]:
        check.fail("arms", "other columns than the context", twice)
    return Table(*(numbers(frame.columns, part) for part in (arm_names, context_names)))


def read_frame(file: str) -> Frame:
    path = path_of(file)
    if file == f"{RIVER}sp500":
        # The last column is the future of the others.
        return Frame(read_csv(path).drop("date", "next_day_return"), [])
    if file == f"{RIVER}image_segments":
        return image_segments(path)
    if path.suffix == ".parquet":
        return Frame(parsed(path, lambda: pl.read_parquet(path)), [])
    if path.name.endswith((".csv", ".csv.gz")):
        return Frame(read_csv(path), [])
    check.fail("file", "a name that ends with .csv, .csv.gz or .parquet", file)


def image_segments(path: Path) -> Frame:
    """Features with mean 0 and deviation 1, and for each kind a column of 1 where it is right."""
    with zipfile.ZipFile(path) as archive:
        content = archive.read(archive.namelist()[0])
    frame = pl.read_csv(io.BytesIO(content))
    features = frame.drop("category")
    kinds = frame["category"].unique().sort()
    return Frame(
        pl.concat(
            [
                features.select((pl.all() - pl.all().mean()) / pl.all().std(ddof=0)),
                frame.select((pl.col("category") == kind).cast(int).alias(kind) for kind in kinds),
            ],
            how="horizontal",
        ),
        features.columns,
    )


def read_csv(path: Path) -> pl.DataFrame:
    """All columns as text, so that an error can name a cell that is not a number."""
    frame = parsed(path, lambda: pl.read_csv(path, infer_schema=False))
    if frame.columns and all(is_number(name) for name in frame.columns):
        check.fail("file", "a table whose first line names its columns", str(path))
    return frame


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def parsed(path: Path, read: Any) -> pl.DataFrame:
    try:
        frame: pl.DataFrame = read()
    except pl.exceptions.NoDataError:
        check.fail("file", "a table with at least one row", str(path))
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        check.fail("file", f"a table that can be read ({reason})", str(path))
    if frame.is_empty():
        check.fail("file", "a table with at least one row", str(path))
    return frame


def chosen(setting: str, wanted: Any, names: list[str]) -> list[str]:
    """The columns that a list names, or that begin with a prefix."""
    if isinstance(wanted, str):
        found = [name for name in names if name.startswith(wanted)]
        if not found or not wanted:
            check.fail(setting, f"names, or how some of {', '.join(names)} begin", wanted)
        return found
    if not isinstance(wanted, list | tuple):
        check.fail(setting, "a list of names of columns, or how their names begin", wanted)
    for name in wanted:
        check.known(f"each of {setting}", name, names)
    if len(set(wanted)) < len(wanted):
        check.fail(setting, "a list of different columns", list(wanted))
    return list(wanted)


def holds_numbers(column: pl.Series) -> bool:
    """Whether any cell is a number: a column of only text or dates is not an arm."""
    return as_numbers(column).count() > 0


def as_numbers(column: pl.Series) -> pl.Series:
    """As float64; null where a cell is not a number."""
    if column.dtype == pl.String:
        return column.str.strip_chars().cast(pl.Float64, strict=False)
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64)
    return pl.Series(column.name, [None] * len(column), dtype=pl.Float64)


def numbers(frame: pl.DataFrame, names: list[str]) -> np.ndarray:
    """The columns side by side; every cell must be a finite number."""
    values = np.empty((frame.height, len(names)), np.float32)
    for place, name in enumerate(names):
        with np.errstate(over="ignore"):
            values[:, place] = as_numbers(frame[name]).to_numpy()
        wrong = np.flatnonzero(~np.isfinite(values[:, place]))
        if wrong.size:
            row = int(wrong[0])
            rule = f"a finite number in every row, in row {row + 1} too"
            check.fail(f"column {name}", rule, frame[name][row])
    return values
