"""Runs experiments on all cores or a cluster, and writes the results to disk.

The work is divided into blocks of runs. A finished block is stored as a piece, under a name made
from everything that determines its numbers, and is never computed again. So an interrupted
command resumes when it is repeated, a changed experiment computes only what has changed, and more
runs cost only the new ones.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from driftbandits import check
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.results import Results, as_it_is
from driftbandits.running import ray_cluster
from driftbandits.running.assembly import Origins, judged_results, measured_lines
from driftbandits.running.compute import Computed, Failed, piece_metadata
from driftbandits.running.drawings import drawing_results
from driftbandits.running.folder import locked
from driftbandits.running.frames import line_frame
from driftbandits.running.local import compute_on_threads
from driftbandits.running.pieces import (
    missing_and_kept,
    read_piece,
    read_piece_metadata,
    write_piece,
)
from driftbandits.running.planning import PieceJob, PlannedLine, jobs_of, plan
from driftbandits.running.progress import Progress
from driftbandits.running.store import table_on_disk, write_results
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.traces import Trace, join

TOGETHER = 256  # pieces read at a time; small ones take more memory apart than together


def run_experiments(
    experiments: Sequence[Experiment],
    folder: str | Path,
    *,
    cores: int | None = None,
    on: str | None = None,
    watcher: Watcher | None = None,
) -> list[Results]:
    """Runs several experiments, or resumes them, and writes their results to one folder.

    Experiments that share simulations share the work. The tables of several experiments might not
    fit into memory together, so they stay on disk and `results.table` reads them.

    Args:
        experiments: The experiments, each with a name of its own.
        folder: Where results are written, a folder for each experiment. Finished work is stored
            here too: repeat an interrupted call and it resumes.
        cores: The number of cores to use. None uses all; the numbers do not depend on it.
        on: `"ray"` or `"ray://HOST:PORT"` to compute on a Ray cluster. None computes in this
            process.
        watcher: Receives progress reports.

    Returns:
        The results, in the order of the experiments.

    Raises:
        InputError: If two experiments have the same name, or `on` is invalid.
        WorkError: If some of the work failed. What is finished stays in the folder.

    Example:
        ```python
        from dataclasses import replace

        from driftbandits import read_experiment, run_experiments

        first = read_experiment("paper/figure_1b").with_size(runs=4, horizon=200)
        first = replace(first, policies=(("chance", "uniform"),), claims=())
        second = replace(first, name="other_seed", seed=1)
        for results in run_experiments([first, second], "results/both"):
            print(results.experiment.name, results.final()["chance"].mean)
        ```
    """
    folder, watcher = Path(folder), watcher or Watcher()
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        check.fail("experiments", "named differently from each other", names)
    if on is not None:
        ray_cluster.check_place(on)
    with locked(folder):
        planned = [line for experiment in experiments for line in plan(experiment)]
        jobs, kept = missing_and_kept(jobs_of(planned), folder)
        watcher.begin(jobs, kept)
        finish = partial(finish_experiment, folder=folder, keep_table=len(names) == 1)
        progress = Progress(experiments, planned, jobs, finish, watcher)
        if on is None:
            write_pieces(compute_on_threads(jobs, cores, watcher), folder, progress)
        else:
            write_pieces(ray_cluster.compute_on_ray(jobs, on, cores, watcher), folder, progress)
        return [progress.results[name] for name in names]


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    cores: int | None = None,
    on: str | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Runs one experiment, or resumes it, and writes its results to a folder.

    Args:
        experiment: The experiment.
        folder: Where results are written, into a folder with the experiment's name. Finished work
            is stored here too: repeat an interrupted call and it resumes.
        cores: The number of cores to use. None uses all; the numbers do not depend on it.
        on: `"ray"` or `"ray://HOST:PORT"` to compute on a Ray cluster. None computes in this
            process.
        watcher: Receives progress reports.

    Returns:
        The results, with a verdict on each claim.

    Raises:
        InputError: If `on` or `cores` is invalid.
        WorkError: If some of the work failed. What is finished stays in the folder.

    Example:
        ```python
        from driftbandits import Experiment, run_experiment

        experiment = Experiment(
            name="mine",
            title="Does UCB beat chance?",
            environments=(("sinusoidal", "sinusoidal"),),
            policies=(("ucb", "ucb"), ("uniform", "uniform")),
            horizon=200,
            runs=4,
            claims=({"text": "It does.", "lower": "ucb", "higher": "uniform"},),
        )
        results = run_experiment(experiment, "results/mine")
        print(results.claims[0]["verdict"])
        ```
    """
    return run_experiments([experiment], folder, cores=cores, on=on, watcher=watcher)[0]


def write_pieces(
    outcomes: Iterable[tuple[PieceJob, Computed | Failed]], folder: Path, progress: Progress
) -> None:
    """Writes every piece as it is finished; an error at the end names those that failed."""
    for job, outcome in outcomes:
        if isinstance(outcome, Failed):
            progress.piece_failed(job, outcome)
        else:
            asked_by = [line.experiment.name for line in progress.lines_with(job.piece)]
            metadata = piece_metadata(job.piece, outcome, asked_by)
            write_piece(folder, job.piece, outcome.trace, metadata)
            progress.piece_done(job.piece, outcome.seconds)
    progress.raise_failures()


def finish_experiment(
    experiment: Experiment, planned: list[PlannedLine], folder: Path, keep_table: bool
) -> Results:
    """Assembles an experiment's pieces, judges its claims and writes both."""
    place = folder / experiment.name
    results = (
        drawing_results(experiment) if experiment.drawing else assemble(experiment, planned, folder)
    )
    write_results(place, results)
    return results if keep_table else table_on_disk(results, place)


def assemble(experiment: Experiment, planned: list[PlannedLine], folder: Path) -> Results:
    """Assembles one line at a time: besides the table, only its pieces are in memory."""
    origins, values, frames = Origins(), {}, []
    read = partial(read_line, folder=folder, origins=origins)
    for measured in measured_lines(experiment, planned, read):
        values[measured.line.label] = measured.values
        frames.append(line_frame(measured, experiment.measure))
        times = measured.trace.times
    table = pl.concat(frames)
    return judged_results(experiment, times, values, origins.summary(), partial(as_it_is, table))


def read_line(line: PlannedLine, folder: Path, origins: Origins) -> Trace:
    """Reads a line's runs from its pieces."""
    for piece in line.pieces:
        metadata = read_piece_metadata(folder, piece)
        origins.add(piece.name, piece.horizon * line.width, metadata)
    firsts = range(0, len(line.pieces), TOGETHER)
    batches = (line.pieces[first : first + TOGETHER] for first in firsts)
    return join([join([read_piece(folder, piece) for piece in batch]) for batch in batches])
