"""Pieces on disk: DIR/pieces/*.parquet, each named by what determines its numbers."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from driftbandits.error_text import first_line
from driftbandits.running.folder import StoreError
from driftbandits.running.frames import frame_trace, trace_frame
from driftbandits.running.parquet import read_metadata, write_parquet
from driftbandits.running.piece import Piece
from driftbandits.running.planning import PieceJob
from driftbandits.simulation.traces import Trace


def piece_path(folder: Path, piece: Piece) -> Path:
    return folder / "pieces" / f"{piece.name}.parquet"


def missing_and_kept(
    jobs: Iterable[PieceJob], folder: Path
) -> tuple[list[PieceJob], list[PieceJob]]:
    """The jobs that have no readable piece on disk yet, and those that have one."""
    missing: list[PieceJob] = []
    kept: list[PieceJob] = []
    for job in jobs:
        if piece_path(folder, job.piece).exists():
            read_piece_metadata(folder, job.piece)
            kept.append(job)
        else:
            missing.append(job)
    return missing, kept


def write_piece(folder: Path, piece: Piece, trace: Trace, metadata: Mapping[str, Any]) -> None:
    write_parquet(piece_path(folder, piece), trace_frame(trace, piece.first_run), metadata)


def read_piece_metadata(folder: Path, piece: Piece) -> dict[str, Any]:
    path = piece_path(folder, piece)
    with reporting_damage(path):
        metadata = read_metadata(path)
        if metadata["piece"] != piece._asdict():
            raise ValueError("it is not the piece that its name says")
        return metadata


def read_piece(folder: Path, piece: Piece) -> Trace:
    path = piece_path(folder, piece)
    with reporting_damage(path):
        return frame_trace(pl.read_parquet(path))


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise StoreError(
            f"{path} cannot be read ({first_line(error)}); delete it and repeat the "
            "command: only this piece is computed again"
        ) from error
