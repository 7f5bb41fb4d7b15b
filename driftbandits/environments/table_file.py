"""Files with tables of rewards: where they are, whether they have changed, what they contain.

Relative paths start at the working directory. The data sets of river (BSD-3-Clause) are

    river:sp500           daily returns, in per cent, of ten stocks of the S&P 500 over 1,257 days
                          from 2013 to 2018; from the Kaggle set "S&P 500 stock data"
    river:image_segments  2,310 outdoor image segments of seven kinds and eighteen features; from
                          the UCI repository, "Image Segmentation"
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.core import BanditSpec
from driftbandits.extras import needs

RIVER = "river:"
UPGRADE = "pip install --upgrade 'driftbandits[data]'"
RIVER_FILES = {"sp500": "sp500.csv.gz", "image_segments": "segment.csv.zip"}


class Table(NamedTuple):
    rewards: np.ndarray  # (rows, num_arms) float32
    contexts: np.ndarray  # (rows, context_dim) float32


def spec_of(table: Table) -> BanditSpec:
    """The problem: the range of the numbers, and the largest standard deviation of an arm."""
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
    """Changes when the file is rewritten."""
    try:
        path = path_of(file).resolve()
        status = path.stat()
    except (OSError, ValueError):  # reading it will fail with a reason
        return (Path.cwd(),)
    return path, status.st_mtime_ns, status.st_size


def path_of(file: Any) -> Path:
    """The path of the file that a setting `file` names."""
    if not isinstance(file, str) or not file:
        check.fail("file", "the name of a file, or river:<name>", file)
    if not file.startswith(RIVER):
        return existing(Path(file), "a CSV or Parquet file that can be read")
    name = file.removeprefix(RIVER)
    check.known(f"the name after {RIVER}", name, RIVER_FILES)
    package = importlib.util.find_spec("river")  # importing it would take seconds
    if package is None or package.origin is None:
        raise check.InputError(needs(f"file={file}", "data"))
    path = Path(package.origin).parent / "datasets" / RIVER_FILES[name]
    return existing(path, "in the package river, which takes a newer one: " + UPGRADE)


def existing(path: Path, rule: str) -> Path:
    try:
        found = path.is_file()
    except (OSError, ValueError):  # a folder without access, or an invalid name
        found = False
    if not found:
        check.fail("file", rule, str(path))
    return path
