"""Draws new_arms.png: what the first pulls of a new article cost, with and without its features.

`python -m tools.publish.new_arms` simulates the same runs with and without features, prints the
rows of the table in docs/how_to/arms_with_features.md and draws its picture.
"""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.figure import Figure

from driftbandits import Environment, build_environment, simulate
from driftbandits.core import State
from driftbandits.experiments.metrics import estimate
from driftbandits.numerics.random_keys import key
from driftbandits.report.curves import save, styled
from driftbandits.report.style import OTHERS
from tools.publish.environment_pictures import label, panels

TARGET = Path(__file__).parents[2] / "docs" / "pictures" / "new_arms.png"
DRAWN = "`lin_ucb`"
CASES = {  # policy and environment
    DRAWN: ("lin_ucb", "articles"),
    "`sw_lin_ucb`": ("sw_lin_ucb", "articles"),
    "`lin_ucb` without drift": ("lin_ucb", "articles(period=1_000_000_000)"),
}
SETTINGS = {"with features": "", "without": "(deviation=None)"}
HORIZON, RUNS = 6000, 32
SHOWN = 60  # pulls of a new article
KINDS = {"first 20 pulls": (1, 20), "later pulls": (21, HORIZON), "all pulls": (0, HORIZON)}


class Pulls(NamedTuple):
    """What every pull cost, and its number among the pulls of its arm: 0 for arms of the start."""

    regret: np.ndarray  # (runs, steps)
    number: np.ndarray  # (runs, steps)


def ids_over_time(environment: Environment, steps: int) -> np.ndarray:
    """Which article is in each place: (steps, places). It is the same in all runs."""

    def step(state: State, _: None) -> tuple[State, Array | None]:
        seen = environment.observe(key(0), state)
        return environment.advance(state, jnp.int32(0)), seen.arm_ids

    return np.asarray(jax.lax.scan(step, environment.init(key(0)), length=steps)[1])


def pull_numbers(pulls: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The numbers of `Pulls`.

    Args:
        pulls: The pulls of each place so far, after each step: (runs, steps, places).
        ids: Which arm is in each place: (steps, places).
    """
    pulled = np.diff(pulls, axis=1, prepend=0)
    steps, places = np.arange(len(ids))[:, None], np.arange(ids.shape[1])
    changed = np.diff(ids, axis=0, prepend=ids[:1]) != 0
    arrival = np.maximum.accumulate(np.where(changed, steps, 0), axis=0)
    before = (pulls - pulled)[:, arrival, places]
    return np.sum((pulls - before) * pulled * (arrival > 0), axis=2).round().astype(int)


def pulls_of(policy: str, environment: str) -> Pulls:
    ids = ids_over_time(build_environment(environment), HORIZON)
    trace = simulate(policy, environment, horizon=HORIZON, runs=RUNS, record_every=1)
    return Pulls(np.diff(trace.regret, axis=1, prepend=0), pull_numbers(trace.pulls, ids))


def mean_cost(pulls: Pulls, first: int, last: int) -> np.ndarray:
    """The mean regret of the pulls with these numbers, in each run."""
    chosen = (first <= pulls.number) & (pulls.number <= last)
    return np.sum(pulls.regret, axis=1, where=chosen) / chosen.sum(axis=1)


def figure_of(found: dict[str, Pulls]) -> Figure:
    """The cost of the first pull of a new article, of the second one and so on."""
    figure, (axes,) = panels(height=3.0)
    numbers = range(1, SHOWN + 1)
    for (name, pulls), colour in zip(found.items(), OTHERS, strict=False):
        curve = estimate(np.stack([mean_cost(pulls, n, n) for n in numbers], axis=1))
        axes.plot(numbers, curve.mean, color=colour, linewidth=1.6, label=name)
        axes.fill_between(numbers, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    axes.legend(frameon=False, fontsize=9)
    axes.set_xlim(1, SHOWN)
    axes.set_ylim(bottom=0)
    label(axes, "pull of a new article", "mean regret of the pull")
    return figure


def as_text(values: np.ndarray) -> str:
    found = estimate(values[:, None])
    return f"{found.mean[0]:.3f} ({found.low[0]:.3f} to {found.high[0]:.3f})"


def table_of(case: str, found: dict[str, Pulls]) -> list[str]:
    """Rows of the table: mean regret of some pulls with features, without, and the difference."""
    rows = []
    for name, (first, last) in KINDS.items():
        less, more = (mean_cost(pulls, first, last) for pulls in found.values())
        cells = f"{less.mean():.3f}", f"{more.mean():.3f}", as_text(less - more)
        rows.append(f"| {case}, {name} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    for case, (policy, environment) in CASES.items():
        found = {name: pulls_of(policy + rest, environment) for name, rest in SETTINGS.items()}
        print("\n".join(table_of(case, found)))
        if case == DRAWN:
            with styled():
                save(figure_of(found), TARGET)
    print(f"written: {TARGET.name}")


if __name__ == "__main__":
    main()
