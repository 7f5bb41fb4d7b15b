"""From pieces to results: one table of all runs, its provenance and the verdicts."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from driftbandits.best_arms import best_arm_table
from driftbandits.experiment import Experiment, Line
from driftbandits.metrics import MEASURES
from driftbandits.planning import Task
from driftbandits.provenance import provenance
from driftbandits.results import Results, as_frame, check_piece, read_piece, write_results
from driftbandits.theorem import judge_ratio_bound, ratio_table
from driftbandits.traces import Trace, cut, join
from driftbandits.tuning import settle
from driftbandits.verdicts import FAILS, UNDECIDED, Curves, Verdict, judge

TOGETHER = 256  # pieces read at a time


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
    return Results(experiment, [], np.zeros(0), {}, table, {**provenance(), "pieces": {}}, [])


def assemble(experiment: Experiment, tasks: list[Task], folder: Path) -> Results:
    """One line after the other: beside the table, only one line's pieces are in memory."""
    origins = Origins()
    runs = experiment.runs
    oracles = {
        task.line.environment: cut(read_line(task, folder, origins), runs)
        for task in tasks[len(experiment.lines()) :]
    }
    values, frames = {}, []
    for task in tasks[: len(experiment.lines())]:
        line, trace = task.line, cut(read_line(task, folder, origins), runs)
        oracle = oracles.get(line.environment)
        values[line.label] = MEASURES[experiment.measure](trace, oracle)
        frames.append(line_frame(line, trace, experiment.measure, values[line.label]))
    lines, judged = settle(experiment, values)
    table = pl.concat(frames)
    return Results(experiment, lines, trace.times, judged, table, origins.summary(), [])


def read_line(task: Task, folder: Path, origins: "Origins") -> Trace:
    """A line's runs, from its pieces; small ones take more memory apart than together."""
    for piece in task.pieces:
        about = check_piece(folder, piece)
        origins.add(piece.path(folder).stem, piece.horizon * task.width, about)
    firsts = range(0, len(task.pieces), TOGETHER)
    batches = (task.pieces[first : first + TOGETHER] for first in firsts)
    return join([join([read_piece(folder, piece) for piece in batch]) for batch in batches])


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


class Origins:
    """The provenance of many pieces as one."""

    NAMES = ("driftbandits", "revision", "python", "machine")

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = defaultdict(set)
        self._packages: dict[str, set[str]] = defaultdict(set)
        self._finished = ""
        self._pieces: dict[str, dict[str, float]] = {}

    def add(self, name: str, pulls: int, about: dict[str, Any]) -> None:
        for key in self.NAMES:
            self._seen[key].add(str(about[key]))
        self._seen["code"].add(about["piece"]["code"])
        for package, version in about["packages"].items():
            self._packages[package].add(version)
        self._finished = max(self._finished, about["finished"])
        self._pieces[name] = {"pulls": pulls, "seconds": about["seconds"]}

    def summary(self) -> dict[str, Any]:
        seen = {key: ", ".join(sorted(texts)) for key, texts in self._seen.items()}
        return {
            **{key: seen[key] for key in self.NAMES},
            "packages": {key: ", ".join(sorted(texts)) for key, texts in self._packages.items()},
            "code": seen["code"],
            "finished": self._finished,
            "pieces": self._pieces,
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
