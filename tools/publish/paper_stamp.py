"""Whether the published verdicts are those of this code: docs/evidence/paper/stamp.json.

It holds the fingerprint of the code behind each line of each figure, with the last values of its
first runs, and what our statistics make of made-up runs. A test compares it with the code.

python -m tools.publish.paper_stamp     # after a change that should change no number, 5 minutes:
                                        # simulates the first runs anew and, if they are the same,
                                        # and claims are judged as before, stamps the fingerprints
                                        # and the experiment files of today
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits import __version__, read_experiment
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.files import as_table, shipped
from driftbandits.experiments.results import Results
from driftbandits.experiments.verdicts import Curves, judge
from driftbandits.running.folder import write_json
from driftbandits.running.in_memory import run_in_memory
from driftbandits.running.planning import plan
from driftbandits.running.provenance import revision
from driftbandits.running.watcher import Watcher

PUBLISHED = Path(__file__).parents[2] / "docs" / "evidence" / "paper"
FIRST_RUNS = 4
CLOSE = 1e-5  # relative: the last digits depend on the processor

Stamp = dict[str, Any]


def paper() -> list[Experiment]:
    found = [read_experiment(name) for name in shipped() if name.startswith("paper/")]
    return [experiment for experiment in found if not experiment.drawing]


def codes_of(experiment: Experiment) -> dict[str, str]:
    """The fingerprint of the code behind each line."""
    return {own.line.label: own.pieces[0].code for own in plan(experiment)}


def statistics_digest() -> str:
    """Of the evidence on every claim of the paper, in made-up skewed runs."""
    numbers: list[Any] = []
    for experiment in paper():
        random = np.random.default_rng(0)
        times = np.arange(1, 21) * (experiment.horizon // 20)
        values = {
            line.label: random.lognormal(1 + 0.1 * i, 1, (experiment.runs, 20)).cumsum(axis=1)
            for i, line in enumerate(experiment.lines())
        }
        curves = Curves(times, values, experiment.sweeps())
        for claim in experiment.parsed_claims():
            found = judge(claim, curves)
            numbers.append([found.verdict, found.by_median])
            numbers += [[f"{x:.6g}" for x in (e.mean, e.low, e.high)] for e in found.evidence]
    return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]


def write_stamp(folder: Path, results: Sequence[Results]) -> None:
    lines = {
        of.experiment.name: {
            label: {"code": code, "final": last_values(of, label)}
            for label, code in codes_of(of.experiment).items()
            if label in of.values
        }
        for of in results
        if of.values
    }
    write(folder, {"statistics": statistics_digest(), "lines": lines})


def write(folder: Path, stamp: Stamp) -> None:
    made = {"driftbandits": __version__, "revision": revision()}
    (folder / "stamp.json").write_text(json.dumps(made | stamp, indent=1) + "\n")


def read(folder: Path = PUBLISHED) -> Stamp:
    return json.loads((folder / "stamp.json").read_text())


def last_values(results: Results, label: str) -> list[float]:
    return [float(f"{value:.9g}") for value in results.values[label][:FIRST_RUNS, -1]]


def restamp(folder: Path = PUBLISHED) -> None:
    """Stamps the code of today if it makes the same first runs."""
    stamp = read(folder)
    for experiment in paper():
        print(experiment.name, flush=True)
        stamped = stamp["lines"][experiment.name]
        found = run_in_memory(replace(experiment, runs=FIRST_RUNS), None, Watcher())
        for label, code in codes_of(experiment).items():
            if label not in stamped:  # the oracle
                continue
            old, new = stamped[label]["final"], last_values(found, label)
            if not np.allclose(new, old, rtol=CLOSE):
                raise SystemExit(
                    f"error: {experiment.name}, {label} ends at {old} in the published runs, got "
                    f"{new}: run `make paper` and look at every figure"
                )
            stamped[label]["code"] = code
    if stamp["statistics"] != statistics_digest():
        raise SystemExit("error: claims are judged otherwise than published: run `make paper`")
    for experiment in paper():
        write_json(folder / experiment.name / "experiment.json", as_table(experiment))
    write(folder, {"statistics": stamp["statistics"], "lines": stamp["lines"]})
    print("the first runs are the same as those that were published; stamped")


if __name__ == "__main__":
    restamp()
