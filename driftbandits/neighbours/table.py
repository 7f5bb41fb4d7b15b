"""External policies in the table of a comparison: more lines, in the same worlds."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from driftbandits import check
from driftbandits.assembly import line_frame
from driftbandits.metrics import MEASURES
from driftbandits.neighbours.external import ExternalPolicy
from driftbandits.neighbours.host import simulate_external
from driftbandits.results import Results
from driftbandits.simulation import Progress, simulate
from driftbandits.traces import Trace


def compare_with(
    results: Results, policies: Mapping[str, ExternalPolicy], *, progress: Progress | None = None
) -> Results:
    """Adds external policies to what `compare` or `run_experiment` gave, in the same worlds.

    Args:
        results: of an experiment without a sweep; horizon, runs, seed and measure are its own.
        policies: name in the table -> what `external_policy` gives.
        progress: called with the steps done and the steps to do, for one policy after the other.
    """
    before = results.experiment
    if before.drawing or before.sweep or before.tuning:
        rule = "of an experiment without a drawing, a sweep and tuning"
        check.fail("results", rule, before.name)
    for name in policies:
        if name in dict(before.policies):
            check.fail("policies", "of names that the results do not have yet", name)
    own = tuple((name, f"external {name}") for name in policies)
    experiment = replace(before, policies=before.policies + own)
    size: dict[str, Any] = {
        "horizon": before.horizon,
        "runs": before.runs,
        "seed": before.seed,
        "record_every": int(results.times[0]),
    }
    values, frames, oracles = dict(results.values), [results.table], dict[str, Trace]()
    new = [line for line in experiment.lines() if line.policy_name in policies]
    for line in new:
        if before.measure == "policy_regret" and line.environment not in oracles:
            oracles[line.environment] = simulate("oracle", line.environment, **size)
        trace = simulate_external(
            policies[line.policy_name], line.environment, progress=progress, **size
        )
        measured = MEASURES[before.measure](trace, oracles.get(line.environment))
        values[line.label] = measured
        frames.append(line_frame(line, trace, before.measure, measured))
    return results._replace(
        experiment=experiment,
        lines=[*results.lines, *new],
        values=values,
        table=pl.concat(frames),
    )
