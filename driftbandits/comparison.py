"""Several policies in the same worlds, measured side by side."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.environments import build_environment
from driftbandits.metrics import MEASURES, Estimate, estimate
from driftbandits.policies import build_policy
from driftbandits.simulation import Trace, simulate

ORACLE = "oracle"


class Comparison(NamedTuple):
    environment: str
    horizon: int
    runs: int
    seed: int
    measure: str
    times: np.ndarray  # (points,)
    values: dict[str, np.ndarray]  # policy as written: (runs, points)

    def final(self) -> dict[str, Estimate]:
        """Each policy's measure at the horizon, lowest first."""
        finals = {policy: estimate(values[:, -1]) for policy, values in self.values.items()}
        return dict(sorted(finals.items(), key=lambda item: float(item[1].mean)))

    def curves(self) -> dict[str, Estimate]:
        """Each policy's measure over time."""
        return {policy: estimate(values) for policy, values in self.values.items()}

    def as_json(self) -> dict[str, Any]:
        """One object for machines; an interval that does not exist is null."""

        def number(x: np.ndarray) -> float | None:
            return None if np.isnan(x) else float(x)

        policies = {
            policy: {name: number(value) for name, value in final._asdict().items()}
            for policy, final in self.final().items()
        }
        about = ("environment", "horizon", "runs", "seed", "measure")
        return {**{name: getattr(self, name) for name in about}, "policies": policies}


Progress = Callable[[str, int, int], None]


def compare(
    policies: Sequence[str],
    environment: str,
    *,
    horizon: int,
    runs: int = 20,
    seed: int = 0,
    measure: str = "regret",
    cores: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Simulates every policy in the same worlds.

    Args:
        policies: as in "recurrent(energy=0)".
        environment: as in "sinusoidal(max_consecutive=10)".
        horizon: pulls per run.
        runs: independent repetitions.
        seed: of everything random.
        measure: a name in `metrics.MEASURES`.
        cores: how many to use; None is all of them.
        progress: called with a policy's name, its steps done and its steps to do.
    """
    check.whole(horizon=horizon, runs=runs)
    check.whole(seed=seed, at_least=0)
    check.known("measure", measure, MEASURES)
    check_choices(policies, environment, horizon)
    traces: dict[str, Trace] = {}
    for policy in needed(policies, measure):
        report = None if progress is None else _named(progress, policy)
        traces[policy] = simulate(
            policy,
            environment,
            horizon=horizon,
            runs=runs,
            seed=seed,
            cores=cores,
            progress=report,
        )
    values = {policy: MEASURES[measure](traces[policy], traces.get(ORACLE)) for policy in policies}
    times = traces[policies[0]].times
    return Comparison(environment, horizon, runs, seed, measure, times, values)


def check_choices(policies: Sequence[str], environment: str, horizon: int) -> None:
    """Refuses what cannot be built, before any work is done."""
    if not policies:
        check.fail("policies", "at least one policy", list(policies))
    spec = build_environment(environment).spec._replace(horizon=horizon)
    for policy in policies:
        build_policy(policy, spec)


def needed(policies: Sequence[str], measure: str) -> list[str]:
    """What has to be simulated: each policy once, and the oracle where it is the reference."""
    reference = [ORACLE] if measure == "policy_regret" else []
    return list(dict.fromkeys([*policies, *reference]))


def _named(progress: Progress, policy: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(policy, done, total)
