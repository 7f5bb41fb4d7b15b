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


def compare(
    policies: str | Sequence[str] = ("tracker", "thompson", "uniform"),
    environment: str = "sinusoidal",
    *,
    horizon: int = 10_000,
    runs: int = 20,
    seed: int = 0,
    measure: str = "regret",
    out: str | Path | None = None,
    cores: int | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Simulates several policies in the same worlds, so that they can be compared.

    Run i of every policy meets the same world: the same means, the same drift and the same random
    rewards. So differences between policies are not luck of the draw.

    Args:
        policies: The policies with their settings, such as `["tracker(width=2)", "ucb"]`, or a
            single one.
        environment: The environment with its settings, such as
            `"sinusoidal(max_consecutive=10)"`.
        horizon: The number of pulls per run.
        runs: The number of independent repetitions.
        seed: The random seed.
        measure: What to measure: a name in `MEASURES`.
        out: A folder that stores the runs, so that an interrupted call resumes when it is repeated.
            None leaves them in memory.
        cores: The number of cores to use. None uses all; the numbers do not depend on it.
        watcher: Receives progress reports.

    Returns:
        The curves of every policy and run. `results.final()` ranks the policies.

    Raises:
        InputError: If an argument is invalid, for example a policy that does not exist.

    Example:
        ```python
        from driftbandits import compare

        results = compare(["ucb", "uniform"], "sinusoidal", horizon=200, runs=4)
        for policy, final in results.final().items():
            print(f"{policy}: {final.mean:.1f} ({final.low:.1f} to {final.high:.1f})")
        ```
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
    """The results as one JSON object, with null for an interval that does not exist."""
    policies = {policy: final.as_json() for policy, final in results.final().items()}
    experiment = results.experiment
    about = {name: getattr(experiment, name) for name in ("horizon", "runs", "seed", "measure")}
    return {"environment": experiment.environments[0][1], **about, "policies": policies}
