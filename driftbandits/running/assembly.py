"""Assembles results from the runs of every line: measure, provenance and verdicts."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.experiments.metrics import MEASURES
from driftbandits.experiments.results import Results
from driftbandits.experiments.tuning import apply_tuning
from driftbandits.experiments.verdicts import Curves, judge
from driftbandits.running.planning import PlannedLine
from driftbandits.simulation.traces import Trace, cut

if TYPE_CHECKING:
    import polars as pl


class MeasuredLine(NamedTuple):
    """A line's runs, and the experiment's measure of them."""

    line: Line
    trace: Trace
    values: np.ndarray  # (runs, points)


def measured_lines(
    experiment: Experiment,
    planned: Sequence[PlannedLine],
    read_line: Callable[[PlannedLine], Trace],
) -> Iterator[MeasuredLine]:
    """Measures one line at a time, so that only one line's runs are in memory."""
    count = len(experiment.lines())  # the oracles come after them
    oracles = {
        oracle.line.environment: cut(read_line(oracle), experiment.runs)
        for oracle in planned[count:]
    }
    measure = MEASURES[experiment.measure]
    for own in planned[:count]:
        trace = cut(read_line(own), experiment.runs)
        yield MeasuredLine(own.line, trace, measure(trace, oracles.get(own.line.environment)))


def judged_results(
    experiment: Experiment,
    times: np.ndarray,
    values: Mapping[str, np.ndarray],
    provenance: dict[str, Any],
    make_table: "Callable[[], pl.DataFrame]",
) -> Results:
    """The results of an experiment, from the measure of each of its lines."""
    lines, shown = apply_tuning(experiment, values)
    curves = Curves(times, shown, experiment.sweeps())
    curves = curves._replace(choosing=experiment.runs - curves.runs)
    claims = [judge(claim, curves).as_json() for claim in experiment.parsed_claims()]
    return Results(
        experiment=experiment,
        lines=lines,
        times=times,
        values=shown,
        provenance=provenance,
        claims=claims,
        make_table=make_table,
    )


class Origins:
    """The combined provenance of many pieces."""

    NAMES = ("driftbandits", "revision", "python", "machine")

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = defaultdict(set)
        self._packages: dict[str, set[str]] = defaultdict(set)
        self._finished = ""
        self._pieces: dict[str, dict[str, float]] = {}

    def add(self, name: str, pulls: int, metadata: Mapping[str, Any]) -> None:
        for key in self.NAMES:
            self._seen[key].add(str(metadata[key]))
        self._seen["code"].add(metadata["piece"]["code"])
        for package, version in metadata["packages"].items():
            self._packages[package].add(version)
        self._finished = max(self._finished, metadata["finished"])
        self._pieces[name] = {"pulls": pulls, "seconds": metadata["seconds"]}

    def summary(self) -> dict[str, Any]:
        seen = {key: ", ".join(sorted(texts)) for key, texts in self._seen.items()}
        return {
            **{key: seen[key] for key in self.NAMES},
            "packages": {key: ", ".join(sorted(texts)) for key, texts in self._packages.items()},
            "code": seen["code"],
            "finished": self._finished,
            "pieces": self._pieces,
        }
