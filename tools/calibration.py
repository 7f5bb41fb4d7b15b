"""How often intervals and verdicts are right: `make calibration` writes the page from it.

It draws experiments with a known mean, and counts how often the 95% interval of each method
contains it, and how wide the interval is. It does the same for mean ranks, and for claims that are
known to be true or false. Seeds are fixed.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.evidence import difference, largest_ratio
from driftbandits.experiments.intervals import TAIL, interval_of_mean
from driftbandits.experiments.ranking import rank_interval, ranks_of, wins_and_losses
from tools.bootstrap import interval, resampled_means, resampling_weights

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
    away, weights = values - mean, resampling_weights(runs)
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


USED = ["percentile", "Student", "Hall or Student"]


def calibrate_intervals() -> None:
    """The methods that the library used and uses, then the others."""
    generator = np.random.default_rng(0)
    rows: dict[str, dict[str, str]] = {}
    for runs in RUNS:
        for name, values, mean in samples(generator, runs, EXPERIMENTS):
            rows[f"{runs} | {name}"] = {
                method: coverage(in_parts(ends_of, values), mean, values.std())
                for method, ends_of in METHODS.items()
            }
    print(INTERVALS)
    print_methods(rows, USED)
    print("\nOther methods that we tried:\n")
    print_methods(rows, [name for name in METHODS if name not in USED])


def print_methods(rows: dict[str, dict[str, str]], methods: list[str]) -> None:
    print_row(["runs", "distribution", *methods])
    print_row(["---"] * (2 + len(methods)))
    for name, cells in rows.items():
        print_row([name, *(cells[method] for method in methods)])


def coverage(ends: Ends, mean: float, deviation: float) -> str:
    low, high = ends
    over, under = 100 * (high < mean).mean(), 100 * (low > mean).mean()
    width = (high - low).mean() / deviation
    return f"{100 - over - under:.1f} ({over:.1f} / {under:.1f}) {width:.2f}"


POLICIES, RANKED_RUNS, RANKED_EXPERIMENTS = 8, 20, 200
FAR_APART, CLOSE, EQUAL, RARELY_WORST = (
    "far apart",
    "close",
    "equal",
    "the best is rarely the worst",
)
FIELDS = [FAR_APART, CLOSE, EQUAL, RARELY_WORST]


def log_means(generator: np.random.Generator, kind: str, problems: int) -> np.ndarray:
    """Of the regrets of eight policies in problems that are drawn at random."""
    shape, places = (problems, POLICIES), np.linspace(0, 1, POLICIES)
    if kind == EQUAL:
        return np.zeros(shape)
    if kind == CLOSE:
        return 0.15 * places + generator.normal(0, 0.05, shape)
    found = 1.5 * places + generator.normal(0, 0.5, shape)
    if kind == RARELY_WORST:
        found[:, 0] = np.where(generator.random(problems) < 0.1, 4, found[:, 0] - 1)
    return found


def regrets(generator: np.random.Generator, means: np.ndarray) -> np.ndarray:
    """Skewed runs in worlds that the policies share: (problems, runs, policies)."""
    shape = len(means), RANKED_RUNS, POLICIES
    world = generator.lognormal(0, 0.5, (*shape[:2], 1))
    return np.exp(means)[:, None, :] * world * generator.lognormal(-0.5, 1, shape)


def percentile_of_ranks(values: np.ndarray) -> Ends:
    """The bootstrap of problems and runs: up to version 0.12."""
    ranks = np.array([ranks_of(resampled_means(runs)) for runs in values])
    means = np.einsum("rp,prk->rk", resampling_weights(len(values), seed=1), ranks)
    mean = ranks_of(values.mean(axis=1)).mean(axis=0)
    low, high = np.clip(interval(mean, means, len(values)), 1, values.shape[2])
    return low, high


def paired_ranks(values: np.ndarray) -> Ends:
    return rank_interval(*wins_and_losses(values))


def calibrate_ranks() -> None:
    print(RANKS)
    print_row(["problems", "policies are", "bootstrap", "width", "paired tests", "width"])
    print_row(["---"] * 6)
    generator = np.random.default_rng(3)
    for kind, problems in product(FIELDS, [5, 12, 30]):
        truth = ranks_of(log_means(generator, kind, 100_000)).mean(axis=0)
        drawn = [
            regrets(generator, log_means(generator, kind, problems))
            for _ in range(RANKED_EXPERIMENTS)
        ]
        cells = [held(map(method, drawn), truth) for method in (percentile_of_ranks, paired_ranks)]
        print_row([str(problems), kind, *cells[0], *cells[1]])


def held(intervals: Iterable[Ends], truth: np.ndarray) -> list[str]:
    """How often intervals hold, over all policies and for the worst one, and their mean width."""
    low, high = (np.array(ends) for ends in zip(*intervals, strict=True))
    inside = 100 * ((low <= truth + 0.01) & (truth - 0.01 <= high)).mean(axis=0)
    return [f"{inside.mean():.1f} ({inside.min():.1f})", f"{(high - low).mean():.1f}"]


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
    print(STABLE)
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
    print(RIVALS)
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

`make calibration` simulates experiments whose true answer is known. It counts how often our 95%
intervals contain the truth, and how often verdicts are right. The last column of a section's first
table is what the library uses. The others are what earlier versions used, and what else we tried.
[Experiment files](../reference/experiment_files.md#claims) explains how verdicts are made.

In short:

- From 20 runs on, the interval of a mean contains it in about 94% of experiments or more, for
  skewed runs too.
- No interval knows about rare bad runs that it has not seen. If one run in twenty goes wrong, 20
  runs miss it in 35% of experiments. Use 100 runs where that matters.
- The interval of a mean rank is wide on purpose: it is narrow only if paired tests can tell the
  policies apart.
- Verdicts on `stable` and on claims about many rivals are careful. They are rarely wrong, and need
  many runs to decide.
"""

INTERVALS = """## Intervals of a mean

Each cell has three things: the share of experiments, in %, whose interval contains the mean; in
brackets, how often the interval is too low / too high; and its mean width, in standard deviations
of a run. "Hall or Student" takes the farther end of two intervals: Student's, and Hall's, which
corrects for skewness.
"""

RANKS = """
## Intervals of a mean rank

Eight policies run on problems drawn at random, with 20 skewed runs each. The truth is the mean rank
over all such problems, with as many runs as it takes to know it. Cells have the share of intervals,
in %, that contain it, over all policies and in brackets for the policy with the lowest share; then
the mean width, in ranks.

The bootstrap, used up to version 0.12, resamples problems and runs. It fails where policies are
close: noise often moves the best policy away from the first rank, and more problems only make the
interval narrower around the wrong value. It also fails for a policy that is the best in most
problems and the worst in one out of ten, as few problems may not include that one.

The paired tests count, in each problem, which policies are shown to be better and which worse. The
others may be on either side. These intervals hold in all cases here, and are wider than they would
have to be where policies are far apart.
"""

STABLE = """
## Verdicts on `stable`

Verdicts in % of experiments, with factor 2: holds / does not hold. The claim is true for a ratio of
1.9 and false for 3. "pairs" tests every pair of settings.
"""

RIVALS = """
## Claims about many rivals

A policy claims to be lower than its rivals, and all of them are equal. Cells say in how many
experiments, in %, the claim is refuted.
"""


def main() -> None:
    print(PAGE)
    calibrate_intervals()
    calibrate_ranks()
    calibrate_stable()
    calibrate_rivals()


if __name__ == "__main__":
    main()
