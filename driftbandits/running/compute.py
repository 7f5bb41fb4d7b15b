"""Computes a piece, on a thread of this process or on a node of a cluster."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from driftbandits.running.piece import Piece, program_of
from driftbandits.running.provenance import provenance
from driftbandits.simulation.devices import own_device
from driftbandits.simulation.engine import run_block
from driftbandits.simulation.threads import Stopped
from driftbandits.simulation.traces import Trace


class Computed(NamedTuple):
    """The numbers of a piece, and where they were computed."""

    trace: Trace
    seconds: float  # of one core
    provenance: dict[str, Any]  # of the process that computed it


class Failed(NamedTuple):
    """Why a piece could not be computed."""

    node: str
    reason: str


def ignore(steps: int) -> None:
    """Does nothing with a number."""


def compute_piece(
    piece: Piece, report_steps: Callable[[int], None] = ignore, stopped: Stopped | None = None
) -> Computed:
    """Simulates a block of runs; `report_steps` gets the new steps of each run as it proceeds."""
    program, stopped = program_of(piece), stopped or Stopped()
    with own_device():
        program.compiled()
        begin = time.perf_counter()
        trace = run_block(program, piece.seed, piece.first_run, report_steps, stopped)
    return Computed(trace, time.perf_counter() - begin, provenance())


def piece_metadata(piece: Piece, computed: Computed, experiments: Iterable[str]) -> dict[str, Any]:
    """Where the numbers of a piece come from, and the names of the experiments that need it."""
    return {
        "piece": piece._asdict(),
        "experiments": list(dict.fromkeys(experiments)),
        **computed.provenance,
        "seconds": round(computed.seconds, 3),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
