"""Should the tracker remember? Beside it, in the same worlds, the tracker with a GRU.

Two of the problems, `echo` and `rhythm`, are there for a memory to win.

python -m research.tracker_memory           # prints docs/evidence/tracker/memory.md
python -m research.tracker_memory --short   # the table of the two for a memory, small
"""

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftbandits import build_environment, build_policy, paired_difference, simulate
from driftbandits.core import Environment, Policy
from driftbandits.experiments.metrics import policy_regret
from driftbandits.policies.tracker.policy import tracker
from driftbandits.simulation import engine
from driftbandits.simulation.engine import ProgressCallback, block_width
from driftbandits.simulation.traces import Trace
from research.history_problems import echo, rhythm
from research.remembering_tracker import remembering_tracker

SEED, RUNS, HORIZON = 70_000, 20, 10_000
SHORT_RUNS, SHORT_HORIZON = 4, 2_000
REPORTS = 10  # of progress, in a simulation

FOR_A_MEMORY: dict[str, Callable[[], Environment]] = {"echo": echo, "rhythm": rhythm}
PROBLEMS = [
    "bernoulli",
    "sinusoidal",
    "bernoulli(max_consecutive=10)",
    "bernoulli(fatigue=0.9)",
    "abrupt",
    *FOR_A_MEMORY,
]


class Measured(NamedTuple):
    regret: np.ndarray  # (runs,) policy regret at the end
    microseconds: float  # of a core, per step and run


def measure(policy: Policy, world: Environment, runs: int, horizon: int) -> Measured:
    """Time counts from the first progress report on, when all is compiled."""
    clock: list[tuple[int, float]] = []

    def progress(done: int, total: int) -> None:
        clock.append((done, time.process_time()))

    def trace_of(policy: Policy, progress: ProgressCallback | None = None) -> Trace:
        return simulate(
            policy,
            world,
            horizon=horizon,
            runs=runs,
            seed=SEED,
            record_every=horizon // REPORTS,
            chunk=horizon // REPORTS,
            cores=1,
            progress=progress,
        )

    trace = trace_of(policy, progress)
    oracle = trace_of(build_policy("oracle", world.spec))
    (first, begin), (last, end) = clock[1], clock[-1]
    steps = (last - first) * block_width(policy)
    return Measured(policy_regret(trace, oracle)[:, -1], (end - begin) / steps * 1e6)


def row(problem: str, runs: int, horizon: int) -> str:
    own = FOR_A_MEMORY.get(problem)
    world = own() if own else build_environment(problem)
    plain = measure(tracker(world.spec), world, runs, horizon)
    remembers = measure(remembering_tracker(world.spec), world, runs, horizon)
    mean, low, high = paired_difference(remembers.regret, plain.regret)
    cells = [f"`{problem}`"]
    for regret, _ in (plain, remembers):
        error = regret.std(ddof=1) / len(regret) ** 0.5
        cells.append(f"{regret.mean():.0f} ± {error:.0f} ({regret.max():.0f})")
    cells.append(f"{mean:+.0f} ({low:+.0f} to {high:+.0f})")
    cells += [f"{plain.microseconds:.1f}", f"{remembers.microseconds:.1f}"]
    return f"| {' | '.join(cells)} |"


INTRODUCTION = f"""\
# The tracker with a GRU

`python -m research.tracker_memory` prints this table. It has the policy regret after {HORIZON:,}
steps over {RUNS} runs with seed {SEED}: mean ± standard error, and the worst run in brackets. The
difference is that with the GRU minus that of the tracker, in the same worlds. The last two columns
are microseconds of a core per step and run, in blocks of {RUNS} runs.

"""
HEAD = """\
| problem | tracker | with the GRU | difference, 95% | us | us with the GRU |
| --- | --- | --- | --- | --- | --- |"""


def main() -> None:
    short = "--short" in sys.argv
    runs, horizon = (SHORT_RUNS, SHORT_HORIZON) if short else (RUNS, HORIZON)
    engine.WIDEST = runs  # no wider blocks than there are runs: the numbers stay the same
    print(HEAD if short else INTRODUCTION + HEAD, flush=True)
    for problem in FOR_A_MEMORY if short else PROBLEMS:
        print(row(problem, runs, horizon), flush=True)


if __name__ == "__main__":
    main()
