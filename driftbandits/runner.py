"""From experiments to results on disk, on all cores or a cluster, going on where it was.

The work is cut into blocks of runs. What is finished is kept as a piece, under a name made from all
that shapes its numbers; a piece that is there is not computed again. So the same command goes on
after a kill, a changed experiment computes what has changed, and more runs cost only the new ones.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from driftbandits import check, cluster
from driftbandits.assembly import finish
from driftbandits.cluster import Failed
from driftbandits.compute import Computed, compute_piece
from driftbandits.experiment import Experiment, Line
from driftbandits.planning import Job, Task, plan
from driftbandits.results import Piece, Results, check_piece, held, write_piece
from driftbandits.verdicts import Verdict
from driftbandits.work import Stopped, WorkError, available_cores, work_off


class Watcher:
    """Is told how the work goes; this one ignores it. Calls may come from any thread."""

    def begin(self, jobs: Sequence[Job], kept: Sequence[Job]) -> None:
        """The jobs to do, and those whose pieces are there already."""

    def at_once(self, cores: int) -> None:
        """How many jobs are worked on at once, from now on."""

    def moved(self, job: Job, steps: int, seconds: float | None = None) -> None:
        """A job has gone forward, over all of its runs; in so many seconds, where that is known."""

    def failed(self, job: Job, why: Failed) -> None:
        """A job cannot be done; the others go on."""

    def line_done(self, experiment: Experiment, line: Line, seconds: float) -> None:
        """A policy has finished in an environment; the seconds are of one core."""

    def experiment_done(self, results: Results, verdicts: list[Verdict]) -> None:
        """Results and verdicts are written."""


def run_experiments(
    experiments: Sequence[Experiment],
    folder: str | Path,
    *,
    cores: int | None = None,
    on: str | None = None,
    watcher: Watcher | None = None,
) -> list[Results]:
    """Runs experiments, or goes on with them; each gets a folder of its own inside `folder`.

    Args:
        experiments: with names that differ.
        folder: keeps the pieces and the results.
        cores: how many pieces to compute at once; None is as many as there are cores.
        on: "ray" or "ray://HOST:PORT" for a Ray cluster; None is this process.
        watcher: is told how the work goes.

    Of several experiments the tables stay on the disk, where `read_results` finds them: together
    they may fill the memory.
    """
    folder, watcher = Path(folder), watcher or Watcher()
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        check.fail("experiments", "named differently from each other", names)
    if on is not None:
        cluster.check_place(on)
    with held(folder):
        tasks = [task for experiment in experiments for task in plan(experiment)]
        jobs, kept = to_do(tasks, folder)
        watcher.begin(jobs, kept)
        progress = Progress(experiments, tasks, jobs, folder, watcher)
        failures = Failures()
        for job, outcome in compute_all(jobs, cores, on, watcher):
            if isinstance(outcome, Failed):
                watcher.failed(job, outcome)
                failures.add(job.piece, outcome)
            else:
                asked = [task.experiment.name for task in progress.tasks_of(job.piece)]
                about = about_piece(outcome, asked)
                write_piece(folder, job.piece, outcome.trace, about)
                progress.piece_done(job.piece, outcome.seconds)
        failures.tell(len(jobs))
        return [progress.results[name] for name in names]


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    cores: int | None = None,
    on: str | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Runs one experiment, or goes on with it."""
    return run_experiments([experiment], folder, cores=cores, on=on, watcher=watcher)[0]


def to_do(tasks: Iterable[Task], folder: Path) -> tuple[list[Job], list[Job]]:
    """The jobs whose pieces are missing, and those whose pieces are there, and whole."""
    jobs: list[Job] = []
    kept: list[Job] = []
    for job in dict.fromkeys(Job(p, task.width) for task in tasks for p in task.pieces):
        if job.piece.path(folder).exists():
            check_piece(folder, job.piece)
            kept.append(job)
        else:
            jobs.append(job)
    return jobs, kept


def compute_all(
    jobs: Sequence[Job], cores: int | None, on: str | None, watcher: Watcher
) -> Iterator[tuple[Job, Computed | Failed]]:
    """Has the jobs done, here or on a cluster; yields each with what it gave, as they finish."""
    if not jobs:
        return
    if on is None:
        watcher.at_once(cores or available_cores())
        for index, computed in work_off((partial(compute, job, watcher) for job in jobs), cores):
            yield jobs[index], computed
        return
    with cluster.connected(on, cores):
        pieces = (job.piece for job in jobs)
        for index, outcome in cluster.work_off(pieces, cores, watcher.at_once):
            if isinstance(outcome, Computed):
                watcher.moved(jobs[index], jobs[index].steps, outcome.seconds)
            yield jobs[index], outcome


def compute(job: Job, watcher: Watcher, stopped: Stopped) -> Computed:
    def moved(steps: int) -> None:
        watcher.moved(job, steps * job.width)

    return compute_piece(job.piece, moved, stopped)


def about_piece(computed: Computed, asked: Iterable[str]) -> dict[str, Any]:
    """Where a piece comes from, and who asked for it."""
    return {
        "experiments": list(dict.fromkeys(asked)),
        **computed.provenance,
        "seconds": round(computed.seconds, 3),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


class Failures:
    """Pieces that could not be computed, those with one cause together."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str, Failed], list[int]] = defaultdict(list)

    def add(self, piece: Piece, why: Failed) -> None:
        self._runs[piece.policy, piece.environment, why].append(piece.first_run)

    def tell(self, total: int) -> None:
        """An error that names them all, if there are any."""
        if not self._runs:
            return
        count = sum(map(len, self._runs.values()))
        lines = [
            f"  {policy} in {environment}, runs from {listed(runs)}: {why.node}: {why.reason}"
            for (policy, environment, why), runs in self._runs.items()
        ]
        raise WorkError(
            "\n".join(
                [
                    f"{count} of {total} pieces could not be computed:",
                    *lines,
                    "what is finished is kept; the same command tries again only these",
                ]
            )
        )


def listed(runs: list[int], most: int = 20) -> str:
    """Numbers in order; of very many the first ones."""
    shown = ", ".join(str(run) for run in sorted(runs)[:most])
    return shown if len(runs) <= most else f"{shown} and {len(runs) - most} more"


class Progress:
    """Keeps count of what is missing, and finishes every experiment as soon as it can be."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        tasks: Sequence[Task],
        jobs: Sequence[Job],
        folder: Path,
        watcher: Watcher,
    ) -> None:
        self.results: dict[str, Results] = {}
        self._folder = folder
        self._watcher = watcher
        self._of: dict[str, list[Task]] = {experiment.name: [] for experiment in experiments}
        self._sharing: dict[Piece, list[Task]] = defaultdict(list)  # by their first piece
        for task in tasks:
            self._of[task.experiment.name].append(task)
            self._sharing[task.pieces[0]].append(task)
        self._missing: Counter[str | tuple[str, str]] = Counter()  # of a line; of an experiment
        self._seconds: Counter[tuple[str, str]] = Counter()
        for job in jobs:
            for task in self.tasks_of(job.piece):
                self._missing[name_of(task)] += 1
                self._missing[task.experiment.name] += 1
        for experiment in experiments:
            self._finish_if_complete(experiment)

    def tasks_of(self, piece: Piece) -> list[Task]:
        """The tasks that a piece belongs to: lines alike, some perhaps with fewer runs."""
        alike = self._sharing[piece._replace(first_run=0)]
        return [task for task in alike if piece.first_run < task.experiment.runs]

    def piece_done(self, piece: Piece, seconds: float) -> None:
        for task in self.tasks_of(piece):
            name, experiment = name_of(task), task.experiment
            self._seconds[name] += seconds  # type: ignore[assignment]
            self._missing[name] -= 1
            self._missing[experiment.name] -= 1
            if not self._missing[name]:
                self._watcher.line_done(experiment, task.line, self._seconds[name])
            self._finish_if_complete(experiment)

    def _finish_if_complete(self, experiment: Experiment) -> None:
        if not self._missing[experiment.name]:
            results, verdicts = finish(experiment, self._of[experiment.name], self._folder)
            self._watcher.experiment_done(results, verdicts)
            if len(self._of) > 1:
                results = results._replace(table=results.table.clear())
            self.results[experiment.name] = results


def name_of(task: Task) -> tuple[str, str]:
    return task.experiment.name, task.line.label
