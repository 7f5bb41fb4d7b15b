"""Several policies in the same worlds, without writing a file: an experiment made on the spot."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandits.experiment import Experiment
from driftbandits.experiment_file import check_experiment
from driftbandits.results import Results
from driftbandits.runner import Watcher, run_experiment

NAME = "comparison"
POLICIES = ("tracker", "thompson", "uniform")  # the default, a classic and chance
ENVIRONMENT = "sinusoidal"


def compare(
    policies: Sequence[str] = POLICIES,
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
    """Simulates every policy in the same worlds.

    Args:
        policies: as in "tracker(width=2)".
        environment: as in "sinusoidal(max_consecutive=10)".
        horizon: pulls per run.
        runs: independent repetitions.
        seed: of everything random.
        measure: a name in `metrics.MEASURES`.
        out: a folder that keeps the runs, so that a killed call can go on; None keeps nothing.
        cores: how many to use; None is all of them.
        watcher: is told how the work goes.
    """
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
    if out is not None:
        return run_experiment(experiment, out, cores=cores, watcher=watcher)
    with tempfile.TemporaryDirectory(prefix="driftbandits-") as folder:
        return run_experiment(experiment, folder, cores=cores, watcher=watcher)


def as_json(results: Results) -> dict[str, Any]:
    """One object for machines; an interval that does not exist is null."""
    policies = {policy: final.as_json() for policy, final in results.final().items()}
    experiment = results.experiment
    about = {name: getattr(experiment, name) for name in ("horizon", "runs", "seed", "measure")}
    return {"environment": experiment.environments[0][1], **about, "policies": policies}
