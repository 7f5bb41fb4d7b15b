"""From experiments to results on disk, on all cores, going on where it was.

The work is cut into blocks of runs. What is finished is kept as a piece, under a name made from all
that shapes its numbers; a piece that is there is not computed again. So the same command goes on
after a kill, a changed experiment computes what has changed, and more runs cost only the new ones.
"""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandits import check
from driftbandits.best_arms import best_arm_table
from driftbandits.choice import parse, with_defaults
from driftbandits.environments import ENVIRONMENTS, build_environment
from driftbandits.experiment import Experiment, Line
from driftbandits.metrics import MEASURES
from driftbandits.policies import POLICIES, build_policy
from driftbandits.provenance import code_fingerprint, provenance
from driftbandits.results import (
    Piece,
    Results,
    as_frame,
    check_piece,
    held,
    read_piece,
    write_piece,
    write_results,
)
from driftbandits.simulation import Program, Trace, cut, join, program_for, run_block
from driftbandits.theorem import judge_ratio_bound, ratio_table
from driftbandits.verdicts import FAILS, UNDECIDED, Curves, Verdict, judge
from driftbandits.work import Stopped, work_off

ORACLE = "oracle"


class Watcher:
    """Is told how the work goes; this one ignores it. Calls may come from any thread."""

    def begin(self, jobs: "Sequence[Job]", kept: "Sequence[Job]") -> None:
        """The jobs to do, and those whose pieces are there already."""

    def moved(self, job: "Job", steps: int) -> None:
        """A job has gone forward, over all of its runs."""

    def line_done(self, experiment: Experiment, line: Line, seconds: float) -> None:
        """A policy has finished in an environment; the seconds are of one core."""

    def experiment_done(self, results: Results, verdicts: list[Verdict]) -> None:
        """Results and verdicts are written."""


class Task(NamedTuple):
    """A line of an experiment, and the pieces that it is made of."""

    experiment: Experiment
    line: Line
    program: Program
    pieces: list[Piece]


class Job(NamedTuple):
    """A piece to compute."""

    piece: Piece
    program: Program

    @property
    def steps(self) -> int:
        return self.piece.horizon * self.program.width


def run_experiments(
    experiments: Sequence[Experiment],
    folder: str | Path,
    *,
    cores: int | None = None,
    watcher: Watcher | None = None,
) -> list[Results]:
    """Runs experiments, or goes on with them; each gets a folder of its own inside `folder`."""
    folder, watcher = Path(folder), watcher or Watcher()
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        check.fail("experiments", "named differently from each other", names)
    with held(folder):
        tasks = {experiment.name: plan(experiment) for experiment in experiments}
        wanted = {
            piece: Job(piece, task.program)
            for each in tasks.values()
            for task in each
            for piece in task.pieces
        }
        kept = [job for piece, job in wanted.items() if piece.path(folder).exists()]
        for job in kept:
            check_piece(folder, job.piece)
        jobs = [job for job in wanted.values() if job not in kept]
        watcher.begin(jobs, kept)
        progress = Progress(experiments, tasks, jobs, folder, watcher)
        progress.look_for_finished()
        for index, (trace, seconds) in work_off(
            (partial(compute, job, watcher) for job in jobs), cores
        ):
            piece = jobs[index].piece
            write_piece(folder, piece, trace, about_piece(jobs[index], tasks, seconds))
            progress.piece_done(piece, seconds)
        found = {results.experiment.name: results for results in progress.results}
        return [found[experiment.name] for experiment in experiments]


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    cores: int | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Runs one experiment, or goes on with it."""
    return run_experiments([experiment], folder, cores=cores, watcher=watcher)[0]


def about_piece(job: Job, tasks: dict[str, list[Task]], seconds: float) -> dict[str, Any]:
    """Where a piece comes from."""
    asked = [name for name, each in tasks.items() if any(job.piece in t.pieces for t in each)]
    return {
        "experiments": asked,
        **provenance(),
        "seconds": round(seconds, 3),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def plan(experiment: Experiment) -> list[Task]:
    """What has to be simulated: every line, and the oracle where the measure needs it."""
    lines = [] if experiment.drawing else experiment.lines()
    if experiment.measure == "policy_regret":
        worlds = {line.environment: line for line in lines}
        lines = [
            *lines,
            *(
                Line(f"{ORACLE} on {text}", ORACLE, ORACLE, line.environment_name, text)
                for text, line in worlds.items()
            ),
        ]
    return [plan_line(experiment, line) for line in lines]


def plan_line(experiment: Experiment, line: Line) -> Task:
    environment = build_environment(line.environment)
    policy = build_policy(line.policy, environment.spec._replace(horizon=experiment.horizon))
    program = program_for(policy, environment, experiment.horizon)
    chosen = with_defaults(parse("policy", line.policy), POLICIES)
    world = with_defaults(parse("environment", line.environment), ENVIRONMENTS)
    pieces = [
        Piece(
            str(chosen),
            str(world),
            experiment.horizon,
            program.every,
            experiment.seed,
            first_run,
            code_fingerprint(),
        )
        for first_run in range(0, experiment.runs, program.width)
    ]
    return Task(experiment, line, program, pieces)


def compute(job: Job, watcher: Watcher, stopped: Stopped) -> tuple[Trace, float]:
    begin = time.perf_counter()
    width = job.program.width
    trace = run_block(
        job.program,
        job.piece.seed,
        job.piece.first_run,
        lambda steps: watcher.moved(job, steps * width),
        stopped,
    )
    return trace, time.perf_counter() - begin


class Progress:
    """Keeps count of what is missing, and finishes every experiment as soon as it can be."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        tasks: dict[str, list[Task]],
        jobs: Sequence[Job],
        folder: Path,
        watcher: Watcher,
    ) -> None:
        self.results: list[Results] = []
        self._waiting = list(experiments)
        self._tasks = tasks
        self._missing = {job.piece for job in jobs}
        self._seconds: dict[Piece, float] = {}
        self._announced: set[tuple[str, str]] = set()
        self._folder = folder
        self._watcher = watcher

    def piece_done(self, piece: Piece, seconds: float) -> None:
        self._missing.remove(piece)
        self._seconds[piece] = seconds
        self.look_for_finished()

    def look_for_finished(self) -> None:
        for tasks in self._tasks.values():
            for task in tasks:
                self._announce(task)
        for experiment in list(self._waiting):
            tasks = self._tasks[experiment.name]
            if not any(piece in self._missing for task in tasks for piece in task.pieces):
                self._waiting.remove(experiment)
                results, verdicts = finish(experiment, tasks, self._folder)
                self.results.append(results)
                self._watcher.experiment_done(results, verdicts)

    def _announce(self, task: Task) -> None:
        name = task.experiment.name, task.line.label
        if name in self._announced or self._missing.intersection(task.pieces):
            return
        self._announced.add(name)
        seconds = sum(self._seconds.get(piece, 0.0) for piece in task.pieces)
        if seconds:
            self._watcher.line_done(task.experiment, task.line, seconds)


def finish(
    experiment: Experiment, tasks: list[Task], folder: Path
) -> tuple[Results, list[Verdict]]:
    """Puts an experiment's pieces together, judges its claims and writes both."""
    results = draw_table(experiment) if experiment.drawing else assemble(experiment, tasks, folder)
    verdicts = judge_claims(results)
    results.claims.extend(verdict.as_json() for verdict in verdicts)
    write_results(folder / experiment.name, results)
    return results, verdicts


def draw_table(experiment: Experiment) -> Results:
    if experiment.drawing == "ratio_bound":
        table = ratio_table()
    else:
        table = best_arm_table(experiment.environments, experiment.times, experiment.seed)
    return Results(experiment, np.zeros(0), {}, table, {**provenance(), "pieces": {}}, [])


def assemble(experiment: Experiment, tasks: list[Task], folder: Path) -> Results:
    traces: dict[str, Trace] = {}
    abouts: list[dict[str, Any]] = []
    for task in tasks:
        blocks = [read_piece(folder, piece) for piece in task.pieces]
        traces[task.line.label] = cut(join(blocks), experiment.runs)
        for piece in task.pieces:
            size = {"name": piece.path(folder).stem, "pulls": Job(piece, task.program).steps}
            abouts.append({**check_piece(folder, piece), **size})
    values = {}
    frames = []
    for line in experiment.lines():
        trace = traces[line.label]
        oracle = traces.get(f"{ORACLE} on {line.environment}")
        values[line.label] = MEASURES[experiment.measure](trace, oracle)
        frames.append(line_frame(line, trace, experiment.measure, values[line.label]))
    times = next(iter(traces.values())).times
    return Results(experiment, times, values, pl.concat(frames), summary(abouts), [])


def line_frame(line: Line, trace: Trace, measure: str, values: np.ndarray) -> pl.DataFrame:
    names = {
        "line": line.label,
        "policy": line.policy,
        "environment": line.environment,
        "swept": None if line.value is None else str(line.value),
    }
    named = [pl.lit(text, dtype=pl.String).alias(name) for name, text in names.items()]
    table = as_frame(trace).select(*named, pl.all())
    arms = pl.col("pulls").arr.to_list()  # environments may differ in their number
    return table.with_columns(arms, pl.Series(measure, values.ravel()))


def summary(abouts: list[dict[str, Any]]) -> dict[str, Any]:
    """The provenance of many pieces as one."""

    def distinct(name: str) -> str:
        return ", ".join(sorted({str(about[name]) for about in abouts}))

    names = ("driftbandits", "revision", "python", "machine")
    return {
        **{name: distinct(name) for name in names},
        "packages": {
            name: ", ".join(sorted({about["packages"][name] for about in abouts}))
            for name in abouts[0]["packages"]
        },
        "code": ", ".join(sorted({about["piece"]["code"] for about in abouts})),
        "finished": max(about["finished"] for about in abouts),
        "pieces": {
            about["name"]: {"pulls": about["pulls"], "seconds": about["seconds"]}
            for about in abouts
        },
    }


def judge_claims(results: Results) -> list[Verdict]:
    """What the runs say of every claim of the experiment."""
    experiment = results.experiment
    curves = Curves(results.times, results.values, experiment.sweeps())
    verdicts = []
    for claim in experiment.parsed_claims():
        if claim.kind == "counterexample":
            evidence = judge_ratio_bound(results.table)
            refuted = any(entry.verdict == FAILS for entry in evidence)
            verdicts.append(Verdict(claim, FAILS if refuted else UNDECIDED, evidence))
        else:
            verdicts.append(judge(claim, curves))
    return verdicts
