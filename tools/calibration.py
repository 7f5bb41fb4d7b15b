"""How often intervals and verdicts are right: `make calibration` writes the page from it.

Draws experiments of known mean, and counts in how many the 95% interval of each method holds it,
and how wide it is. Then experiments for claims of which it is known whether they hold. The seed is
fixed. What the library uses is the last column.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.evidence import difference, largest_ratio
from driftbandits.experiments.intervals import TAIL, interval_of_mean
from driftbandits.experiments.metrics import interval, resampling_weights

EXPERIMENTS = 4000
FEW_EXPERIMENTS = 400  # for verdicts
AT_ONCE = 500  # resamples of so many experiments fit into memory
RUNS = [8, 20, 50, 100, 400]
FAR = 1e9  # standard errors, of a resample whose runs are all the same

Ends = tuple[np.ndarray, np.ndarray]
Method = Callable[[np.ndarray], Ends]  # (runs, experiments) -> low and high ends


class Sample(NamedTuple):
    """Experiments with a known mean."""

    name: str
    values: np.ndarray  # (runs, experiments)
    mean: float


def samples(generator: np.random.Generator, runs: int, experiments: int) -> Iterator[Sample]:
    """The regrets that simulations have: even, skewed, and with a few runs that lock."""
    shape = runs, experiments
    yield Sample("normal", generator.normal(size=shape), 0.0)
    yield Sample("exponential", generator.exponential(size=shape), 1.0)
    yield Sample("log-normal(1)", generator.lognormal(0, 1, shape), np.exp(0.5))
    locked = generator.random(shape) < 0.05
    yield Sample("5% locked", np.where(locked, 10, 1) + generator.normal(0, 0.2, shape), 1.45)
    world = generator.lognormal(0, 1, shape)
    first, second = generator.lognormal(0, 0.5, (2, *shape))
    difference = world * first - 0.8 * world * second
    yield Sample("paired difference", difference, 0.2 * np.exp(0.5 + 0.125))


weights_of = lru_cache(resampling_weights)


def resampled_means(values: np.ndarray) -> np.ndarray:
    return np.tensordot(weights_of(len(values)), values, axes=1)


def percentile(values: np.ndarray) -> Ends:
    """The central 95% of the resampled means, widened for few runs: up to version 0.10."""
    low, high = interval(values.mean(axis=0), resampled_means(values), len(values))
    return low, high


def student(values: np.ndarray) -> Ends:
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5
    reach = stdtrit(len(values) - 1, 1 - TAIL) * error
    return mean - reach, mean + reach


def bias_corrected(values: np.ndarray) -> Ends:
    """BCa of Efron (1987), widened for few runs like `percentile`."""
    runs, mean = len(values), values.mean(axis=0)
    away = values - mean
    moved = np.sort(resampled_means(away), axis=0)
    bias = ndtri(np.clip((moved < 0).mean(axis=0), 1e-4, 1 - 1e-4))
    acceleration = (away**3).sum(axis=0) / 6 / (away**2).sum(axis=0) ** 1.5
    normal = stdtrit(runs - 1, 1 - TAIL) * (runs / (runs - 1)) ** 0.5

    def end(sign: int) -> np.ndarray:
        level = bias + sign * normal
        share = ndtr(bias + level / (1 - acceleration * level))
        place = np.rint(share * (len(moved) - 1)).astype(int)
        return mean + np.take_along_axis(moved, place[None], axis=0)[0]

    return end(-1), end(1)


def bootstrap_t(values: np.ndarray) -> Ends:
    """Quantiles of (mean* - mean) / error* in place of Student's."""
    runs, mean = len(values), values.mean(axis=0)
    away, weights = values - mean, weights_of(runs)
    moved = weights @ away
    spread = np.sqrt(np.maximum(weights @ away**2 - moved**2, 0) / (runs - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        studentised = np.nan_to_num(moved / spread, nan=0.0, posinf=FAR, neginf=-FAR)
    low, high = np.quantile(studentised, [TAIL, 1 - TAIL], axis=0)
    error = values.std(axis=0, ddof=1) / runs**0.5
    return mean - high * error, mean - low * error


def hall(values: np.ndarray) -> Ends:
    """Student's t with the cubic correction for skewness of Hall (1992)."""
    runs, mean = len(values), values.mean(axis=0)
    away, spread = values - mean, values.std(axis=0)
    skewness = (away**3).mean(axis=0) / spread**3 * (runs * (runs - 1)) ** 0.5 / (runs - 2)
    lean, error = skewness / runs**0.5, values.std(axis=0, ddof=1) / runs**0.5
    quantile = stdtrit(runs - 1, 1 - TAIL)

    def inverse(level: float) -> np.ndarray:
        return 3 / lean * (np.cbrt(1 + lean * (level - lean / 6)) - 1)

    return mean - error * inverse(quantile), mean - error * inverse(-quantile)


def farther(first: Method, second: Method) -> Method:
    """Each end is the one of two methods that is farther out."""

    def both(values: np.ndarray) -> Ends:
        (low, high), (other_low, other_high) = first(values), second(values)
        return np.minimum(low, other_low), np.maximum(high, other_high)

    return both


METHODS: dict[str, Method] = {
    "percentile": percentile,
    "Student": student,
    "BCa": bias_corrected,
    "bootstrap-t": bootstrap_t,
    "Hall": hall,
    "bootstrap-t or Student": farther(bootstrap_t, student),
    "Hall or Student": interval_of_mean,
}


def in_parts(method: Method, values: np.ndarray) -> Ends:
    parts = range(0, values.shape[1], AT_ONCE)
    ends = [method(values[:, first : first + AT_ONCE]) for first in parts]
    low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
    return low, high


def print_row(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def calibrate_intervals() -> None:
    print("Experiments in % whose interval holds the mean; in brackets: of those that do not, its")
    print("high end is too low / its low end is too high; then the mean width in deviations.\n")
    print_row(["runs", "distribution", *METHODS])
    print_row(["---"] * (2 + len(METHODS)))
    generator = np.random.default_rng(0)
    for runs in RUNS:
        for name, values, mean in samples(generator, runs, EXPERIMENTS):
            cells = []
            for method in METHODS.values():
                low, high = in_parts(method, values)
                over, under = 100 * (high < mean).mean(), 100 * (low > mean).mean()
                width = (high - low).mean() / values.std()
                cells.append(f"{100 - over - under:.1f} ({over:.1f} / {under:.1f}) {width:.2f}")
            print_row([str(runs), name, *cells])


LAYOUTS = {  # true means of a sweep, as places between the smallest and the largest
    "3 settings": [0, 0.4, 1],
    "5 settings": [0, 0, 0.5, 1, 1],
    "10 settings": [0] * 5 + [1] * 5,
}


def bootstrapped_ratio(values: np.ndarray, factor: float) -> str:
    """The percentile interval of largest over smallest mean: up to version 0.10."""

    def ratio(means: np.ndarray) -> np.ndarray:
        return means.max(axis=-1) / means.min(axis=-1)

    low, high = interval(ratio(values.mean(axis=0)), ratio(resampled_means(values)), len(values))
    return HOLDS if high < factor else FAILS if low > factor else UNDECIDED


def paired_ratios(values: np.ndarray, factor: float) -> str:
    return largest_ratio("", {str(k): line for k, line in enumerate(values.T)}, factor, 1).verdict


def sweeps(
    generator: np.random.Generator, places: list[float], ratio: float, runs: int, skewed: bool
) -> np.ndarray:
    """Positive runs of policies with these means: (experiments, runs, settings)."""
    means = 1 + (ratio - 1) * np.asarray(places)
    shape = FEW_EXPERIMENTS, runs, len(places)
    if skewed:
        return means * generator.lognormal(-0.5, 1, shape)
    return means * generator.gamma(4, 0.25, shape)


def calibrate_stable() -> None:
    print("\n## Verdicts on `stable`\n")
    print("Verdicts with factor 2, in %: holds / does not hold.\n")
    print_row(["runs", "settings", "distribution", "true ratio", "bootstrap", "pairs"])
    print_row(["---"] * 6)
    generator = np.random.default_rng(1)
    for runs, (layout, places), skewed, ratio in product(
        [20, 100], LAYOUTS.items(), [False, True], [1.9, 3.0]
    ):
        values = sweeps(generator, places, ratio, runs, skewed)
        name = "log-normal(1)" if skewed else "gamma(4)"
        cells = [
            shares([judge(experiment, 2.0) for experiment in values], [HOLDS, FAILS])
            for judge in (bootstrapped_ratio, paired_ratios)
        ]
        print_row([str(runs), layout, name, str(ratio), *cells])


def refuted_before(values: np.ndarray) -> bool:
    """Whether any rival's interval is below 0, by those of version 0.10: (runs, rivals)."""
    return bool((percentile(values)[1] < 0).any())


def refuted_now(values: np.ndarray) -> bool:
    count = values.shape[1]
    return any(difference("", column, count).verdict == FAILS for column in values.T)


def calibrate_rivals() -> None:
    print("\n## Claims about many rivals\n")
    print("A claim to be lower than rivals that are all equal: it is refuted in %.\n")
    print_row(["runs", "rivals", "distribution", "percentile", "corrected"])
    print_row(["---"] * 5)
    generator = np.random.default_rng(2)
    for runs, rivals, sigma in product([20, 100], [1, 10, 30], [0.1, 1.0]):
        drawn = generator.lognormal(0, sigma, (FEW_EXPERIMENTS, runs, 1 + rivals))
        differences = drawn[:, :, 1:] - drawn[:, :, :1]
        cells = [
            f"{100 * np.mean([judge(experiment) for experiment in differences]):.1f}"
            for judge in (refuted_before, refuted_now)
        ]
        print_row([str(runs), str(rivals), f"log-normal({sigma:g})", *cells])


def shares(verdicts: list[str], kinds: list[str]) -> str:
    return " / ".join(f"{100 * verdicts.count(kind) / len(verdicts):.1f}" for kind in kinds)


PAGE = """# How far to trust an interval and a verdict

`make calibration` draws experiments whose truth is known, and counts how often our 95% intervals
and verdicts are right. The last column of each table is what the library uses; the others are what
it used up to version 0.10, and what else was tried. [Experiment
files](../reference/experiment_files.md#claims) says how verdicts are made.

## Intervals
"""


def main() -> None:
    print(PAGE)
    calibrate_intervals()
    calibrate_stable()
    calibrate_rivals()


if __name__ == "__main__":
    main()
