"""`recurrent` beside PyTorch and the limit, and the time of every policy without a network."""

import statistics
from collections.abc import Callable

from benchmarks.measuring import CORES, Contestant, Goal, Part, Series, ratios, take_turns
from driftbandits import POLICIES, simulate

BLOCK = 4  # runs of `recurrent` that our simulator takes forward together; limit.c does the same
NETWORKS = 100
INDEX_POLICIES = ("ucb",)
SLOW = {"recurrent", "neural_linear", "fewa"}  # exact FEWA has its own curve in growth.py
ONE, BOTH = "recurrent, 1 core", f"recurrent, {CORES} cores"
LOOP, LIMIT = "(a) eager PyTorch, 1 thread", "(c) the limit in C, 1 core"
EAGER, COMPILED = (
    f"(b) batched PyTorch, {NETWORKS} networks, {CORES} threads, {how}"
    for how in ("eager", "torch.compile")
)


def ours(policy: str, environment: str, horizon: int, runs: int, cores: int = 1) -> Contestant:
    def take() -> object:
        return simulate(policy, environment, horizon=horizon, runs=runs, cores=cores)

    return Contestant(take, horizon * runs)


def steady(proceed: Callable[[int], object], steps: int, runs: int) -> Contestant:
    """Goes on from where it was, so only the first turn pays for the start."""
    return Contestant(lambda: proceed(steps), steps * runs)


def neural_contestants(short: bool) -> dict[str, Contestant]:
    from benchmarks import limit, torch_batched, torch_loop

    steps, batched = (100, 4) if short else (1000, 40)
    return {
        LOOP: Contestant(lambda: torch_loop.run(steps), steps),
        EAGER: steady(
            torch_batched.contestant(NETWORKS, threads=CORES, compiled=False), batched, NETWORKS
        ),
        COMPILED: steady(torch_batched.contestant(NETWORKS, threads=CORES), batched, NETWORKS),
        f"{LIMIT}, {BLOCK} runs": steady(limit.contestant(BLOCK), 2 * steps, BLOCK),
        ONE: ours("recurrent", "sinusoidal", 2 * steps, BLOCK),
        BOTH: ours("recurrent", "sinusoidal", 2 * steps, BLOCK * CORES, CORES),
        f"{LIMIT}, 1 run": steady(limit.contestant(1), 2 * steps, 1),
    }


def neural(short: bool) -> Part:
    """`recurrent` with the paper's sizes."""
    from benchmarks import limit

    worst = limit.check()
    times = take_turns(neural_contestants(short))
    best = min((EAGER, COMPILED), key=lambda name: statistics.median(times[name]))
    goals = [
        Goal(f"{ONE}: times faster than (a)", ratios(times[LOOP], times[ONE]), low=16),
        Goal(f"{BOTH}: times faster than (a)", ratios(times[LOOP], times[BOTH]), low=32),
        *(
            Goal(
                f"{BOTH}: times faster than {name}" + (", the best of (b)" if name == best else ""),
                ratios(times[name], times[BOTH]),
                low=10 if name == best else None,
            )
            for name in (EAGER, COMPILED)
        ),
        Goal(
            f"{ONE}: times as long as (c), {BLOCK} runs each",
            ratios(times[ONE], times[f"{LIMIT}, {BLOCK} runs"]),
            high=1.35,
        ),
        Goal(
            f"for scale, (b) beyond the reach of {CORES} cores at the limit: {best} over (c)",
            [CORES * x for x in ratios(times[best], times[f"{LIMIT}, {BLOCK} runs"])],
        ),
    ]
    notes = [
        f"limit.c agrees with NumPy to {worst:.0e} after 20 steps. The last line is how many times "
        f"faster than (b) a program would be that runs at the limit on {CORES} cores."
    ]
    return Part("The neural step: recurrent", as_series(times), goals, notes)


def as_series(times: dict[str, list[float]]) -> list[Series]:
    return [Series(name, values) for name, values in times.items()]


def policies(short: bool) -> Part:
    """Every policy that is not a network, on one core and on all."""
    names = [name for name in POLICIES if name not in SLOW]
    horizon = 1000 if short else 20_000
    contestants = {}
    for name in names:
        contestants[name] = ours(name, environment(name), horizon, 100)
        contestants[on_all(name)] = ours(name, environment(name), horizon, 100 * CORES, CORES)
    times = take_turns(contestants)
    goals = [Goal(f"{name}: us per step and run", times[name], high=0.2) for name in INDEX_POLICIES]
    goals.append(Goal("thompson: us per step and run", times["thompson"], high=1))
    goals += [
        Goal(f"{on_all(name)}: times the speed on 1", ratios(times[name], times[on_all(name)]))
        for name in names
    ]
    return Part(
        f"Policies without a network: {horizon:,} steps of 100 runs per core, 1 core unless named",
        as_series(times),
        goals,
        [
            "swa is no index: it sums the window of the pulled arm anew in every step, so that "
            "rounding does not pile up."
        ],
    )


def on_all(policy: str) -> str:
    return f"{policy}, {CORES} cores"


def environment(policy: str) -> str:
    """A problem of the kind the policy is for; the paper's ten arms where it can be."""
    return "wheel" if policy == "lin_ts" else "bernoulli"
