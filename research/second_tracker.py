"""python -m research.second_tracker SET POLICY ...: versions of the tracker beside tuned rivals.

SET is `development` or `judging` (problems in this folder) or `shown` (those of the published
evidence). The first policy is the one that all others are compared with, run by run. `--rivals`
adds the best of many policies and settings, chosen on the runs that are shown. Results are kept in
results/second_tracker: what was run is not run again.
"""

import argparse
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from driftbandits import Experiment, build_environment, run_experiment
from driftbandits.environments import ENVIRONMENTS
from driftbandits.experiments.files import read_experiments

KEPT = Path("results/second_tracker")
HEADS = ["problem", "policy", "mean", "median", "95%", "worst", "beside the first"]
FREE = [  # of a context
    *(f"ucb(scale={scale})" for scale in (0.1, 0.3, 1.0)),
    *(f"sw_ucb(window={w}, xi={xi})" for w in (100, 300, 1000, 3000) for xi in (0.02, 0.1, 0.6)),
    *(f"d_ucb(discount={d}, xi={xi})" for d in (0.97, 0.99, 0.998) for xi in (0.02, 0.1, 0.6)),
    *(f"gaussian_thompson(discount={d})" for d in (0.97, 0.99, 0.998, 0.9995)),
    *(f"epsilon_greedy(epsilon={e}, rate=0.1)" for e in (0.03, 0.1)),
    *("eff_raw_ucb(alpha=0.2)", "cusum_ucb(exploration=0.05)", "exp3_s(gamma=0.1)"),
]
CONTEXTUAL = [  # with a context or features of arms
    *(f"lin_ucb(alpha={alpha})" for alpha in (0.1, 0.3, 1.0)),
    *(f"d_lin_ucb(discount={d}, alpha={a})" for d in (0.98, 0.998, 0.9995) for a in (0.1, 0.4)),
    *(f"d_lin_ts(discount={d}, variance={v})" for d in (0.98, 0.998, 0.9995) for v in (0.01, 0.1)),
    "gaussian_thompson(discount=0.998)",
]


def problems(chosen: str, runs: int, seed: int) -> Iterator[Experiment]:
    """One experiment for each problem, without policies."""
    if chosen == "shown":
        for file in read_experiments("tracker"):
            if "slow" in file.name or "ablation" in file.name:
                continue
            for name, written in file.environments:
                yield blank(name, written, horizon=file.horizon, runs=runs, seed=file.seed)
        return
    table = getattr(importlib.import_module(f"research.{chosen}_problems"), chosen.upper())
    ENVIRONMENTS.update(table)
    for name in table:
        yield blank(name, name, horizon=10_000, runs=runs, seed=seed)


def blank(name: str, written: str, *, horizon: int, runs: int, seed: int) -> Experiment:
    return Experiment(
        name=name.replace(",", "").replace(" ", "_"),
        title=name,
        environments=((name, written),),
        policies=(),
        horizon=horizon,
        runs=runs,
        seed=seed,
        measure="policy_regret",
        points=20,
    )


def finals(problem: Experiment, policies: Sequence[str]) -> dict[str, np.ndarray]:
    """The regret of each run at the horizon, by policy."""
    named = tuple((policy, policy) for policy in policies)
    results = run_experiment(replace(problem, policies=named), KEPT)
    return {line.policy: results.values[line.label][:, -1] for line in results.lines}


def row(problem: str, policy: str, regret: np.ndarray, first: np.ndarray) -> str:
    apart = regret - first
    error = apart.std(ddof=1) / len(apart) ** 0.5
    numbers = [regret.mean(), np.median(regret), np.percentile(regret, 95), regret.max()]
    cells = [problem, f"`{policy}`", *(f"{number:,.1f}" for number in numbers)]
    return line_of([*cells, f"{apart.mean():+,.1f} ± {error:,.1f}" if error else ""])


def line_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def rows(problem: Experiment, policies: list[str], rivals: bool) -> Iterator[str]:
    own = finals(problem, policies)
    first = own[policies[0]]
    for policy, regret in own.items():
        yield row(problem.title, policy, regret, first)
    if rivals:
        environment = build_environment(problem.environments[0][1])
        spec = environment.spec
        tried = finals(problem, CONTEXTUAL if spec.context_dim or spec.arm_dim else FREE)
        best = min(tried, key=lambda policy: tried[policy].mean())
        yield row(problem.title, best, tried[best], first)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.second_tracker", description=__doc__)
    parser.add_argument("set", choices=["development", "judging", "shown"])
    parser.add_argument("policies", nargs="+")
    parser.add_argument("--problems", nargs="*", default=[], help="titles; all if none is named")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the two sets in this folder")
    told = parser.parse_args()
    print(line_of(HEADS), line_of(["---"] * len(HEADS)), sep="\n")
    for problem in problems(told.set, told.runs, told.seed):
        if not told.problems or problem.title in told.problems:
            print(*rows(problem, told.policies, told.rivals), sep="\n", flush=True)


if __name__ == "__main__":
    main()
