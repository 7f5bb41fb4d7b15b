"""`recurrent` with the paper's sizes, beside PyTorch and the limit."""

import statistics

from benchmarks import limit, torch_batched, torch_loop
from benchmarks.measuring import (
    CORES,
    Contestant,
    Goal,
    Part,
    Times,
    as_series,
    ours,
    ratios,
    steady,
    take_turns,
)

NETWORKS = 100
ONE, BOTH = "recurrent, 1 core", f"recurrent, {CORES} cores"
LOOP = "(a) eager PyTorch, 1 thread"
BATCHED = [
    f"(b) batched PyTorch, {NETWORKS} networks, {CORES} threads, {how}"
    for how in ("eager", "torch.compile")
]
LIMITS = [
    f"(c) the limit in C, 1 core, {limit.RUNS} runs, {how}"
    for how in ("reciprocals by division", "by Newton's iteration")
]
FLOOR = f"limit.c without roots and reciprocals, 1 core, {limit.RUNS} runs"


def recurrent(short: bool) -> Part:
    worst = max(limit.check(way) for way in limit.EXACT)
    times = take_turns(contestants(short))
    notes = [
        f"limit.c agrees with NumPy to {worst:.0e} after 20 steps. The last two lines are how much "
        f"faster than (b) a program would be that runs on {CORES} cores at the limit, and one for "
        "which roots and reciprocals cost nothing at all: what is left of it are four products, "
        "and two numbers per weight that are read and written."
    ]
    return Part("The neural step: recurrent", as_series(times), goals(times), notes)


def contestants(short: bool) -> dict[str, Contestant]:
    steps, batched = (100, 4) if short else (1000, 40)
    together = limit.RUNS

    def in_torch(compiled: bool) -> Contestant:
        proceed = torch_batched.contestant(NETWORKS, threads=CORES, compiled=compiled)
        return steady(proceed, batched, NETWORKS)

    def in_c(way: str) -> Contestant:
        return steady(limit.contestant(together, way), 2 * steps, together)

    return {
        LOOP: Contestant(lambda: torch_loop.run(steps), steps),
        **{name: in_torch(how) for name, how in zip(BATCHED, (False, True), strict=True)},
        **{name: in_c(way) for name, way in zip(LIMITS, limit.EXACT, strict=True)},
        ONE: ours("recurrent", "sinusoidal", 2 * steps, together),
        BOTH: ours("recurrent", "sinusoidal", 2 * steps, together * CORES, CORES),
        FLOOR: in_c(limit.FREE),
    }


def goals(times: Times) -> list[Goal]:
    """The best of PyTorch's versions and the best of the limits are what counts."""
    torch, best = fastest(times, BATCHED), fastest(times, LIMITS)
    return [
        Goal(f"{ONE}: times faster than (a)", ratios(times[LOOP], times[ONE]), low=16),
        Goal(f"{BOTH}: times faster than (a)", ratios(times[LOOP], times[BOTH]), low=32),
        *(
            Goal(
                f"{BOTH}: times faster than {name}" + ", the best of (b)" * (name == torch),
                ratios(times[name], times[BOTH]),
                low=10 if name == torch else None,
            )
            for name in BATCHED
        ),
        *(
            Goal(
                f"{ONE}: times as long as {name}" + ", the best of (c)" * (name == best),
                ratios(times[ONE], times[name]),
                high=1.35 if name == best else None,
            )
            for name in LIMITS
        ),
        *(
            Goal(
                f"for scale, the best of (b) over {CORES} cores with {name}",
                [CORES * x for x in ratios(times[torch], times[name])],
            )
            for name in (best, FLOOR)
        ),
    ]


def fastest(times: Times, names: list[str]) -> str:
    return min(names, key=lambda name: statistics.median(times[name]))
