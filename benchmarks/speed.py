"""Microseconds per step and run, beside an eager PyTorch loop in the same process.

Absolute times mean little on a shared machine; the ratios are what counts, so the contestants take
turns and the median of the repeats is shown.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import torch_loop
from driftbandits import POLICIES, simulate

REPEATS = 5
TORCH_STEPS = 400
CORES = os.cpu_count() or 1


def per_step(work: Callable[[], object], steps: int) -> float:
    """Microseconds per step of one call."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) / steps * 1e6


def ours(policy: str, horizon: int, runs: int, cores: int) -> Callable[[], object]:
    return lambda: simulate(policy, "sinusoidal", horizon=horizon, runs=runs, cores=cores)


def contestants() -> dict[str, tuple[Callable[[], object], int]]:
    """Name: what to run, and how many steps of all runs that is."""
    found: dict[str, tuple[Callable[[], object], int]] = {
        "recurrent, eager PyTorch, 1 thread": (lambda: torch_loop.run(TORCH_STEPS), TORCH_STEPS),
        "recurrent, 1 core": (ours("recurrent", 1000, 8, 1), 8000),
        f"recurrent, {CORES} cores": (ours("recurrent", 1000, 16, CORES), 16_000),
    }
    for policy in POLICIES:
        if policy != "recurrent":
            horizon, runs = (200, 8) if policy == "neural_linear" else (1000, 64)
            found[f"{policy}, 1 core"] = ours(policy, horizon, runs, 1), horizon * runs
    return found


def main() -> None:
    games = contestants()
    for work, _ in track(list(games.values()), "compiling", transient=True):
        work()
    times: dict[str, list[float]] = {name: [] for name in games}
    for _ in track(range(REPEATS), "measuring", transient=True):
        for name, (work, steps) in games.items():
            times[name].append(per_step(work, steps))
    reference = statistics.median(times["recurrent, eager PyTorch, 1 thread"])
    table = Table(
        title=f"{platform.machine()}, {CORES} cores; jax {version('jax')}, "
        f"torch {version('torch')}; {REPEATS} repeats"
    )
    for column in ("", "us per step and run", "lowest", "highest", "steps per second", "x PyTorch"):
        table.add_column(column, justify="left" if not column else "right")
    for name, values in times.items():
        middle = statistics.median(values)
        ratio = f"{reference / middle:.1f}" if name.startswith("recurrent") else ""
        spread = f"{min(values):,.2f}", f"{max(values):,.2f}"
        table.add_row(name, f"{middle:,.2f}", *spread, f"{1e6 / middle:,.0f}", ratio)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
