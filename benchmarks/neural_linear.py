"""`neural_linear` beside NumPy, plain and with our shortcuts: times, and the regrets of all."""

import statistics

from benchmarks import numpy_neural_linear
from benchmarks.growth import compile_for
from benchmarks.measuring import (
    CORES,
    Contestant,
    Goal,
    Part,
    Series,
    Times,
    as_series,
    ours,
    ratios,
    take_turns,
)
from driftbandits import simulate

OURS = "neural_linear"
ONE, BOTH = "neural_linear, 1 core", f"neural_linear, {CORES} cores"
PLAIN, SHORTCUTS = "plain NumPy, 1 thread", "NumPy with our shortcuts, 1 thread"
PLAIN_EARLY, ONE_EARLY = f"{PLAIN}, the first steps", f"{ONE}, the first steps"

Regrets = dict[str, list[float]]  # of each run, in the order of their seeds


def neural_linear(short: bool) -> Part:
    horizon, early = (200, 60) if short else (1000, 200)
    regrets: Regrets = {PLAIN: [], SHORTCUTS: [], OURS: []}
    times = take_turns(contestants(horizon, early, regrets))
    series = [
        Series(f"{name}: regret, one value per run", values, "regret")
        for name, values in regrets.items()
    ]
    notes = [
        "Plain is the paper's rule as it is written: every arm's coefficients sampled at each step "
        "from a normal distribution of 100 dimensions, the pulled arm's posterior by an inverse "
        "from all of its rewards, so that a step costs the more the longer the run has been; the "
        f"first steps are {early}. Our shortcuts are to sample the scores themselves, which have "
        "the same distribution, and to update by one rank; what is left is the training, about "
        "33 million operations per step."
    ]
    title = f"The neural step: neural_linear on the wheel, {horizon:,} steps"
    return Part(title, as_series(times) + series, goals(times, regrets), notes)


def contestants(horizon: int, early: int, regrets: Regrets) -> dict[str, Contestant]:
    """They add what they find to the regrets, which also tell them the next seed."""
    block = compile_for(OURS, "wheel", horizon)

    def in_numpy(name: str, runs: int) -> Contestant:
        def take() -> None:
            for _ in range(runs):
                seed = len(regrets[name])
                regrets[name].append(numpy_neural_linear.run(horizon, seed, plain=name == PLAIN))

        return Contestant(take, horizon * runs)

    def in_ours(cores: int) -> Contestant:
        def take() -> None:
            seed, runs = len(regrets[OURS]), block * cores
            trace = simulate(OURS, "wheel", horizon=horizon, runs=runs, seed=seed, cores=cores)
            regrets[OURS] += trace.regret[:, -1].tolist()

        return Contestant(take, horizon * block * cores)

    return {
        PLAIN: in_numpy(PLAIN, 1),
        SHORTCUTS: in_numpy(SHORTCUTS, 4),
        ONE: in_ours(1),
        BOTH: in_ours(CORES),
        PLAIN_EARLY: Contestant(lambda: numpy_neural_linear.run(early, plain=True), early),
        ONE_EARLY: ours(OURS, "wheel", early, block),
    }


def goals(times: Times, regrets: Regrets) -> list[Goal]:
    faster = [
        Goal(f"{name}: times faster than plain NumPy", ratios(times[PLAIN], times[name]), low=10)
        for name in (ONE, BOTH)
    ]
    for_scale = [
        Goal(f"the same for {ONE_EARLY}", ratios(times[PLAIN_EARLY], times[ONE_EARLY])),
        Goal(f"{ONE}: times faster than {SHORTCUTS}", ratios(times[SHORTCUTS], times[ONE])),
    ]
    same_regret = [
        Goal(
            f"regret of {name} minus ours, in standard errors",
            [distance(regrets[name], regrets[OURS])],
            low=-3,
            high=3,
        )
        for name in (PLAIN, SHORTCUTS)
    ]
    return faster + for_scale + same_regret


def distance(first: list[float], second: list[float]) -> float:
    """Between two means, in standard errors."""
    error = sum(statistics.variance(x) / len(x) for x in (first, second)) ** 0.5
    return (statistics.mean(first) - statistics.mean(second)) / error
