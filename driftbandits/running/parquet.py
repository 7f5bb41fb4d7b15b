"""Parquet files with metadata on their origin."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from driftbandits.running.folder import write_file

KEY = "driftbandits"  # of our entry in a file's metadata


def write_parquet(path: Path, table: pl.DataFrame, metadata: Mapping[str, Any]) -> None:
    buffer = io.BytesIO()
    table.write_parquet(buffer, metadata={KEY: json.dumps(metadata)})
    write_file(path, buffer.getvalue())


def read_metadata(path: Path) -> dict[str, Any]:
    """Reads the metadata, which is at the end of the file: if it is there, the file is complete."""
    metadata: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)[KEY])
    return metadata
