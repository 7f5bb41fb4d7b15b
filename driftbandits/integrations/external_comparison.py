"""Adds external policies to a comparison, in the same worlds."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from driftbandits import check
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.metrics import MEASURES
from driftbandits.experiments.results import Results
from driftbandits.integrations.external import ExternalPolicy
from driftbandits.integrations.external_simulation import simulate_external
from driftbandits.running.assembly import MeasuredLine
from driftbandits.simulation.engine import ProgressCallback, simulate
from driftbandits.simulation.traces import Trace

if TYPE_CHECKING:
    import polars as pl


def compare_with(
    results: Results,
    policies: Mapping[str, ExternalPolicy],
    *,
    progress: ProgressCallback | None = None,
) -> Results:
    """Adds policies of other libraries to the results of a comparison, in the same worlds.

    Args:
        results: What `compare` or `run_experiment` returned, for an experiment without a sweep and
            without tuning. Its horizon, runs, seed and measure are used.
        policies: For each new name in the table, what `external_policy` returned.
        progress: A function that is called with the number of steps done and the number in total,
            for one policy after the other.

    Returns:
        New results with the added policies.

    Raises:
        InputError: If the experiment has a sweep or tuning, or a name is taken.

    Example:
        ```python
        import random

        from driftbandits import compare, compare_with, external_policy

        mine = external_policy(
            lambda seed: random.Random(seed),
            pull=lambda generator, arms, context: generator.choice(arms),
            update=lambda generator, arm, reward, context: None,
        )
        results = compare("ucb", horizon=200, runs=4)
        print(list(compare_with(results, {"mine": mine}).final()))
        ```
    """
    experiment = with_policies(results.experiment, policies)
    size: dict[str, Any] = {
        "horizon": experiment.horizon,
        "runs": experiment.runs,
        "seed": experiment.seed,
        "record_every": int(results.times[0]),
    }
    added, oracles = list[MeasuredLine](), dict[str, Trace]()
    for line in experiment.lines():
        if line.policy_name not in policies:
            continue
        if experiment.measure == "policy_regret" and line.environment not in oracles:
            oracles[line.environment] = simulate("oracle", line.environment, **size)
        policy = policies[line.policy_name]
        trace = simulate_external(policy, line.environment, progress=progress, **size)
        values = MEASURES[experiment.measure](trace, oracles.get(line.environment))
        added.append(MeasuredLine(line, trace, values))
    return replace(
        results,
        experiment=experiment,
        lines=[*results.lines, *(line for line, _, _ in added)],
        values={**results.values, **{line.label: values for line, _, values in added}},
        make_table=partial(extended_table, results, added),
    )


def with_policies(experiment: Experiment, policies: Mapping[str, ExternalPolicy]) -> Experiment:
    if experiment.drawing or experiment.sweep or experiment.tuning:
        rule = "of an experiment without a drawing, a sweep and tuning"
        check.fail("results", rule, experiment.name)
    for name in policies:
        if name in dict(experiment.policies):
            check.fail("policies", "of names that the results do not have yet", name)
    external = tuple((name, f"external {name}") for name in policies)
    return replace(experiment, policies=experiment.policies + external)


def extended_table(results: Results, added: list[MeasuredLine]) -> "pl.DataFrame":
    import polars as pl

    from driftbandits.running.frames import line_frame

    measure = results.experiment.measure
    return pl.concat([results.table, *(line_frame(line, measure) for line in added)])
