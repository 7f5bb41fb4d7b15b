"""How time grows with the horizon and the runs, FEWA's with t, and memory with the horizon."""

import time
from collections.abc import Iterable
from itertools import pairwise

import jax
import numpy as np

from benchmarks.measuring import REPEATS, Goal, Part, Series
from benchmarks.memory import RUNS, measured
from driftbandits import simulate
from driftbandits.environments import build_environment
from driftbandits.policies import build_policy
from driftbandits.simulation.devices import own_device
from driftbandits.simulation.engine import program_for

ENVIRONMENT = "sinusoidal"
DOUBLINGS = 3
SIZES = {"ucb": (20_000, 100), "thompson": (10_000, 100), "recurrent": (2000, 4)}  # steps, runs
FEWA_STEPS, FEWA_CHUNK = 100_000, 2000
MEMORY_STEPS = 10_000, 100_000, 1_000_000
GIGABYTE = 1000.0  # in megabytes


def compile_for(policy: str, environment: str, horizon: int, chunk: int | None = None) -> int:
    """So that what follows measures steps only; returns how many runs go together."""
    world = build_environment(environment)
    built = build_policy(policy, world.spec._replace(horizon=horizon))
    program = program_for(built, world, horizon, None, chunk)
    own_device()(program.compiled)()
    return program.width


def seconds(policy: str, horizon: int, runs: int) -> float:
    """That this process had a core: what others do meanwhile would not grow linearly."""
    begin = time.process_time()
    simulate(policy, ENVIRONMENT, horizon=horizon, runs=runs, cores=1)
    return time.process_time() - begin


def doubled(policy: str, of: str, short: bool) -> tuple[list[int], np.ndarray]:
    """Sizes, each twice the one before, and seconds (repeats, sizes)."""
    horizon, runs = SIZES[policy]
    factors = [2**i for i in range(DOUBLINGS + 1)]
    if short:
        horizon //= 10
    sizes = [(horizon * f, runs) if of == "horizon" else (horizon, runs * f) for f in factors]
    for steps in {size[0] for size in sizes}:
        compile_for(policy, ENVIRONMENT, steps)
    seconds(policy, *sizes[0])
    table = [[seconds(policy, *size) for size in sizes] for _ in range(REPEATS)]
    print(f"  {policy}, {of}: {np.median(table, axis=0).round(3).tolist()} s", flush=True)
    return [size[0] if of == "horizon" else size[1] for size in sizes], np.array(table)


def growth(short: bool) -> Part:
    """Doubling the horizon or the runs, and FEWA against t."""
    part = Part("Growth of the time on a core, compilation left out")
    for of in ("horizon", "runs"):
        for policy in SIZES:
            sizes, table = doubled(policy, of, short)
            for size, times in zip(sizes, table.T, strict=True):
                part.series.append(Series(f"{policy}, {of} {size}", times.tolist(), "s"))
            for i in range(DOUBLINGS):
                ratio = table[:, i + 1] / table[:, i]
                name = f"{policy}, {of} {sizes[i]:,} to {sizes[i + 1]:,}: times the time"
                part.goals.append(Goal(name, ratio.tolist(), low=1.9, high=2.2))
    fewa(part, short)
    return part


def fewa(part: Part, short: bool) -> None:
    """Cost per step against t, fitted to log t, and the size of the exact version's memory."""
    horizon = FEWA_STEPS // (10 if short else 1)
    for policy in ("fewa", "eff_fewa"):
        at, costs = step_costs(policy, horizon, repeats=2 if short else REPEATS)
        part.series += [
            Series(f"{policy}, step {t}", costs[:, i].tolist()) for i, t in enumerate(at)
        ]
        if policy == "eff_fewa":
            slope, start = np.polyfit(np.log(at), np.median(costs, axis=0), 1)
            part.notes.append(f"eff_fewa: step t costs about {start:.2f} + {slope:.2f} ln t us.")
            # Ten times as late may cost as much more as ln t has grown, and measuring error.
            late = costs[:, -1] / np.array([np.interp(at[-1] / 10, at, row) for row in costs])
            most = 1.1 * np.log(at[-1]) / np.log(at[-1] / 10)
            name = f"eff_fewa, step {at[-1]:,} over step {at[-1] // 10:,}: times the time"
            part.goals.append(Goal(name, late.tolist(), high=round(float(most), 2)))
    for horizon in MEMORY_STEPS:
        size = state_bytes("fewa", horizon)
        part.notes.append(f"fewa keeps {size / 2**20:.1f} MiB per run at a horizon of {horizon:,}.")


def step_costs(policy: str, horizon: int, repeats: int) -> tuple[list[int], np.ndarray]:
    """Middles of the intervals between progress reports; microseconds (repeats, intervals)."""
    chunk = FEWA_CHUNK * horizon // FEWA_STEPS
    runs = compile_for(policy, "rotting", horizon, chunk)
    timed_marks(policy, horizon, chunk, runs)  # to warm up
    rows, at = [], []
    for _ in range(repeats):
        marks = timed_marks(policy, horizon, chunk, runs)
        intervals = list(pairwise(marks))
        at = [(a + b) // 2 for (a, _), (b, _) in intervals]
        rows.append([(u - s) / (b - a) / runs * 1e6 for (a, s), (b, u) in intervals])
    print(f"  {policy}: {np.median(rows, axis=0).round(2).tolist()[::10]} us", flush=True)
    return at, np.array(rows)


def timed_marks(policy: str, horizon: int, chunk: int, runs: int) -> list[tuple[int, float]]:
    """Steps done and the time on the core, at every progress report of one block of runs."""
    marks: list[tuple[int, float]] = []
    simulate(
        policy,
        "rotting",
        horizon=horizon,
        runs=runs,
        cores=1,
        chunk=chunk,
        progress=lambda done, _: marks.append((done, time.process_time())),
    )
    return marks


def state_bytes(policy: str, horizon: int) -> int:
    spec = build_environment("rotting").spec._replace(horizon=horizon)
    state = jax.eval_shape(build_policy(policy, spec).init, jax.random.key(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def memory(short: bool) -> Part:
    """Peak memory of `recurrent` with thinned recording."""
    part = Part(f"Memory: {RUNS} runs of recurrent, thinned recording, a process each")
    for horizon in MEMORY_STEPS[: 2 if short else 3]:
        print(f"  {horizon:,} steps", flush=True)
        found = measured(horizon)
        part.series.append(Series(f"recurrent, {horizon} steps", [found["megabytes"]], "MB"))
        part.series.append(Series(f"recurrent, {horizon} steps", [found["seconds"]], "s"))
        part.goals.append(
            Goal(f"{horizon:,} steps: MB at the peak", [found["megabytes"]], high=GIGABYTE)
        )
    return part


def points(series: Iterable[Series], start: str, unit: str) -> tuple[list[int], list[float]]:
    """Sizes and medians of the series whose name is `start` and a size."""
    chosen = [s for s in series if s.what.startswith(start) and s.unit == unit]
    sizes = [int(s.what.removeprefix(start).split()[0]) for s in chosen]
    return sizes, [float(np.median(s.values)) for s in chosen]
