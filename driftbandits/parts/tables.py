"""Tables of rewards from files: CSV, Parquet, or a data set that the package river brings.

A table has a row per step and named columns of numbers. Relative paths start at the working
directory. The data sets of river (BSD-3-Clause) are

    river:sp500           daily returns, in per cent, of ten stocks of the S&P 500 over 1,257 days
                          from 2013 to 2018; from the Kaggle set "S&P 500 stock data"
    river:image_segments  2,310 outdoor image segments of seven kinds and eighteen features; from
                          the UCI repository, "Image Segmentation"
"""

import hashlib
import importlib.util
import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandits import check
from driftbandits.core import BanditSpec

RIVER = "river:"
RIVER_FILES = {"sp500": "sp500.csv.gz", "image_segments": "segment.csv.zip"}
REMEDY = "pip install 'driftbandits[data]'"
Columns = str | list[str] | None  # a prefix of names, names, or what the table proposes


class Frame(NamedTuple):
    """Columns, and which of them are contexts unless somebody says otherwise."""

    columns: pl.DataFrame
    context: list[str]


class Table(NamedTuple):
    rewards: np.ndarray  # (rows, num_arms) float32
    contexts: np.ndarray  # (rows, context_dim) float32


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


def spec_of(table: Table) -> BanditSpec:
    """The range is that of the numbers, the noise the largest deviation of an arm's."""
    low, high = float(table.rewards.min()), float(table.rewards.max())
    high = high if high > low else low + 1
    noise = float(table.rewards.std(axis=0, dtype=np.float64).max()) or (high - low) / 2
    return BanditSpec(
        table.rewards.shape[1], table.contexts.shape[1], reward_range=(low, high), noise=noise
    )


def fingerprint_of_file(file: str | Path) -> str:
    """Sixteen hexadecimal digits of the content's SHA-256."""
    with path_of(str(file)).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def stamp_of_file(file: str) -> tuple[object, ...]:
    """What is another one, in all likelihood, when the file has been written again."""
    try:
        path = path_of(file).resolve()
        status = path.stat()
    except (OSError, ValueError):  # it will be refused with a reason where it is read
        return (Path.cwd(),)
    return path, status.st_mtime_ns, status.st_size


def path_of(file: Any) -> Path:
    """The file that a setting `file` means."""
    if not isinstance(file, str) or not file:
        check.fail("file", "the name of a file, or river:<name>", file)
    if not file.startswith(RIVER):
        return existing(Path(file), "a CSV or Parquet file that can be read")
    name = file.removeprefix(RIVER)
    check.known(f"the name after {RIVER}", name, RIVER_FILES)
    package = importlib.util.find_spec("river")  # to import it would take seconds
    if package is None or package.origin is None:
        check.fail("file", f"readable, which takes the package river: {REMEDY}", file)
    path = Path(package.origin).parent / "datasets" / RIVER_FILES[name]
    return existing(path, f"in the package river, which takes a newer one: {REMEDY} --upgrade")


def existing(path: Path, rule: str) -> Path:
    try:
        found = path.is_file()
    except (OSError, ValueError):  # a folder that may not be entered, a name that cannot be one
        found = False
    if not found:
        check.fail("file", rule, str(path))
    return path


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
    """All columns as text, so that a cell that is no number can be named."""
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
    """Whether any cell is a number: a column of nothing but text or dates is no arm."""
    return as_numbers(column).count() > 0


def as_numbers(column: pl.Series) -> pl.Series:
    """In float64; nothing where a cell is no number."""
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
