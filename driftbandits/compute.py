"""A piece, from its text to its numbers: the same on a thread of ours and on a node far away."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from driftbandits.backend import own_device
from driftbandits.environments import build_environment
from driftbandits.policies import build_policy
from driftbandits.provenance import provenance
from driftbandits.results import Piece
from driftbandits.simulation import Program, program_for, run_block
from driftbandits.traces import Trace
from driftbandits.work import Stopped

_building = threading.Lock()


class Computed(NamedTuple):
    """What a piece gave, and where."""

    trace: Trace
    seconds: float  # of one core
    provenance: dict[str, Any]  # of the process that computed it


def ignore(steps: int) -> None:
    """Nobody wants to know how far it is."""


def compute_piece(
    piece: Piece, moved: Callable[[int], None] = ignore, stopped: Stopped | None = None
) -> Computed:
    """Simulates a block of runs; `moved` is called with the steps that each run has taken."""
    program, stopped = program_of(piece), stopped or Stopped()
    with own_device():
        program.compiled()
        begin = time.perf_counter()
        trace = run_block(program, piece.seed, piece.first_run, moved, stopped)
    return Computed(trace, time.perf_counter() - begin, provenance())


def program_of(piece: Piece) -> Program:
    """What a piece names, built from its text; the pieces of one line share it."""
    with _building:  # two threads that both missed the cache would have a program each
        environment = build_environment(piece.environment)
        spec = environment.spec._replace(horizon=piece.horizon)
        policy = build_policy(piece.policy, spec)
        return program_for(policy, environment, piece.horizon, piece.record_every)


def keep_compiled_programs() -> None:
    """Keeps what XLA compiled for the next call, unless the user has said where already."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "driftbandits"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
