"""Experiments that need no runs: the numbers of a drawing, and the verdicts on its claims."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from driftbandits.experiments.best_arms import best_arm_columns
from driftbandits.experiments.claims import Claim
from driftbandits.experiments.effects import FAILS, UNDECIDED
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.results import Results
from driftbandits.experiments.theorem import judge_ratio_bound, ratio_rows
from driftbandits.experiments.verdicts import Verdict
from driftbandits.running.provenance import provenance


def drawing_results(experiment: Experiment) -> Results:
    claims = []
    if experiment.drawing == "ratio_bound":
        rows = ratio_rows()
        claims = [judge_bound(claim, rows).as_json() for claim in experiment.parsed_claims()]
        table = pl.DataFrame(rows)
    else:
        table = pl.DataFrame(
            best_arm_columns(experiment.environments, experiment.times, experiment.seed)
        )
    origin = {**provenance(), "pieces": {}}
    return Results.of_drawing(experiment, origin, claims, table)


def judge_bound(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> Verdict:
    evidence = judge_ratio_bound(rows)
    refuted = any(entry.verdict == FAILS for entry in evidence)
    return Verdict(claim, FAILS if refuted else UNDECIDED, evidence)
