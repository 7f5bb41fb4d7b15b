"""An experiment whose pieces stay in memory: nothing is written, and nothing but JAX is needed."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.results import Results
from driftbandits.extras import needed_for
from driftbandits.running.assembly import MeasuredLine, Origins, judged_results, measured_lines
from driftbandits.running.compute import piece_metadata
from driftbandits.running.local import compute_on_threads
from driftbandits.running.piece import Piece
from driftbandits.running.planning import PlannedLine, jobs_of, plan
from driftbandits.running.progress import Progress
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.traces import Trace, join

if TYPE_CHECKING:
    import polars as pl


class KeptPiece(NamedTuple):
    trace: Trace
    metadata: dict[str, Any]


def run_in_memory(experiment: Experiment, cores: int | None, watcher: Watcher) -> Results:
    """The results that `run_experiment` would write, of an experiment with runs."""
    planned = plan(experiment, narrow=True)
    jobs = jobs_of(planned)
    kept: dict[Piece, KeptPiece] = {}
    watcher.begin(jobs, [])
    progress = Progress(
        [experiment], planned, jobs, lambda _, lines: assemble(experiment, lines, kept), watcher
    )
    for job, computed in compute_on_threads(jobs, cores, watcher):
        metadata = piece_metadata(job.piece, computed, [experiment.name])
        kept[job.piece] = KeptPiece(computed.trace, metadata)
        progress.piece_done(job.piece, computed.seconds)
    return progress.results[experiment.name]


def assemble(
    experiment: Experiment, planned: list[PlannedLine], kept: dict[Piece, KeptPiece]
) -> Results:
    origins = Origins()

    def read_line(line: PlannedLine) -> Trace:
        for piece in line.pieces:
            origins.add(piece.name, piece.horizon * line.width, kept[piece].metadata)
        return join([kept[piece].trace for piece in line.pieces])

    measured = list(measured_lines(experiment, planned, read_line))
    return judged_results(
        experiment,
        measured[0].trace.times,
        {line.label: values for line, _, values in measured},
        origins.summary(),
        partial(table_of, experiment, measured),
    )


def table_of(experiment: Experiment, measured: list[MeasuredLine]) -> "pl.DataFrame":
    with needed_for("Results.table"):
        import polars as pl

        from driftbandits.running.frames import line_frame

    return pl.concat(line_frame(line, experiment.measure) for line in measured)
