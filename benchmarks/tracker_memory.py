"""Should the tracker remember? Beside it, in the same worlds, the tracker with a GRU.

Two of the problems, `echo` and `rhythm`, are there for a memory to win.

python -m benchmarks.tracker_memory           # writes docs/tracker/memory.md
python -m benchmarks.tracker_memory --short   # prints the two for a memory, small
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.history_problems import echo, rhythm
from benchmarks.remembering_tracker import remembering_tracker
from driftbandits import build_environment, build_policy, paired_difference, simulate, simulation
from driftbandits.core import Environment, Policy
from driftbandits.metrics import policy_regret
from driftbandits.policies.tracker import tracker
from driftbandits.simulation import Progress, block_width
from driftbandits.traces import Trace

PAGE = Path(__file__).parents[1] / "docs" / "tracker" / "memory.md"
SEED, RUNS, HORIZON = 70_000, 20, 10_000
SHORT_RUNS, SHORT_HORIZON = 4, 2_000
SIGNS = 10  # of life, in a simulation

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
    """Time counts from the first sign of life on, when all is compiled."""
    clock: list[tuple[int, float]] = []

    def progress(done: int, total: int) -> None:
        clock.append((done, time.process_time()))

    def trace_of(policy: Policy, progress: Progress | None = None) -> Trace:
        return simulate(
            policy,
            world,
            horizon=horizon,
            runs=runs,
            seed=SEED,
            record_every=horizon // SIGNS,
            chunk=horizon // SIGNS,
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
        cells += [f"{regret.mean():.0f} ± {error:.0f}", f"{regret.max():.0f}"]
    cells.append(f"{mean:+.0f} ({low:+.0f} to {high:+.0f})")
    cells += [f"{plain.microseconds:.1f}", f"{remembers.microseconds:.1f}"]
    return f"| {' | '.join(cells)} |"


HEAD = """\
| problem | tracker | worst | with the GRU | worst | difference, 95% | us | us with the GRU |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def page(table: str) -> str:
    return f"""# The tracker with a GRU, by `python -m benchmarks.tracker_memory`

Policy regret after {HORIZON:,} steps, {RUNS} runs, seed {SEED}: mean ± standard error, and the
worst run. The difference is that with the GRU minus that of the tracker, in the same worlds. The
last two columns are microseconds of a core per step and run, in blocks of {RUNS} runs.

{table}
"""


def main() -> None:
    short = "--short" in sys.argv
    runs, horizon = (SHORT_RUNS, SHORT_HORIZON) if short else (RUNS, HORIZON)
    simulation.WIDEST = runs  # no wider blocks than there are runs: the numbers stay the same
    print(HEAD, flush=True)
    rows = []
    for problem in FOR_A_MEMORY if short else PROBLEMS:
        rows.append(row(problem, runs, horizon))
        print(rows[-1], flush=True)
    if not short:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page("\n".join([HEAD, *rows])))


if __name__ == "__main__":
    main()
