"""Computes pieces on the cores of this machine."""

from collections.abc import Iterator, Sequence
from functools import partial

from driftbandits.running.compute import Computed, compute_piece
from driftbandits.running.planning import PieceJob
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.threads import available_cores, call_on_threads


def compute_on_threads(
    jobs: Sequence[PieceJob], cores: int | None, watcher: Watcher
) -> Iterator[tuple[PieceJob, Computed]]:
    """Yields each job with its result, as they finish."""
    watcher.cores_used(cores or available_cores())
    calls = (partial(compute_piece, job.piece, partial(advance, watcher, job)) for job in jobs)
    for index, computed in call_on_threads(calls, cores):
        yield jobs[index], computed


def advance(watcher: Watcher, job: PieceJob, steps: int) -> None:
    """Counts the steps of all runs, which advance together."""
    watcher.advanced(job, steps * job.width)
