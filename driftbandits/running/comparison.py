"""Several policies in the same worlds: an experiment without a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.files import check_experiment
from driftbandits.experiments.results import Results
from driftbandits.extras import needed_for
from driftbandits.running.in_memory import run_in_memory
from driftbandits.running.watcher import Watcher

NAME = "comparison"
POLICIES = ("tracker", "thompson", "uniform")  # the default, a classic and chance
ENVIRONMENT = "sinusoidal"


def compare(
    policies: str | Sequence[str] = POLICIES,
    environment: str = ENVIRONMENT,
    *,
    horizon: int = 10_000,
    runs: int = 20,
    seed: int = 0,
    measure: str = "regret",
    out: str | Path | None = None,
    cores: int | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Simulates several policies in the same worlds.

    Args:
        policies: for example ["tracker(width=2)", "ucb"], or a single one.
        environment: for example "sinusoidal(max_consecutive=10)".
        horizon: pulls per run.
        runs: independent repetitions.
        seed: random seed.
        measure: a name in `MEASURES`.
        out: a folder that keeps the runs, to continue a killed call; None keeps them in memory.
        cores: how many to use; None is all of them. The numbers do not depend on it.
        watcher: receives progress reports.
    """
    policies = [policies] if isinstance(policies, str) else policies
    experiment = Experiment(
        name=NAME,
        title=environment,
        environments=((environment, environment),),
        policies=tuple((policy, policy) for policy in dict.fromkeys(policies)),
        horizon=horizon,
        runs=runs,
        seed=seed,
        measure=measure,
    )
    check_experiment(experiment)
    if out is None:
        return run_in_memory(experiment, cores, watcher or Watcher())
    with needed_for("compare(out=...)"):
        from driftbandits.running.runner import run_experiment  # takes Polars

    return run_experiment(experiment, out, cores=cores, watcher=watcher)


def as_json(results: Results) -> dict[str, Any]:
    """One object for machines; an interval that does not exist is null."""
    policies = {policy: final.as_json() for policy, final in results.final().items()}
    experiment = results.experiment
    about = {name: getattr(experiment, name) for name in ("horizon", "runs", "seed", "measure")}
    return {"environment": experiment.environments[0][1], **about, "policies": policies}
