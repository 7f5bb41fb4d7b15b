"""Intervals of means, of their ratios and of medians, for few and skewed runs.

Regrets are skewed: a few runs are much worse than the others, and runs that lack such a one look
better and surer than they are. Student's interval is then too low. Hall (1992), "On the removal of
skewness by transformation", corrects it by the sample's skewness:

    mean - error * g(t),   g(x) = 3/c ((1 + c (x - c/6))^(1/3) - 1),   c = skewness / sqrt(runs)

Where a heavy tail only seems skewed, as in differences of policies, that draws in the wrong end. So
each end is the farther one of the two, but at most FARTHEST times as far out as Student's.
docs/explanation/calibration.md compares it with others.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
FARTHEST = 2.0  # beyond it, ends of few runs go far out and hold the mean hardly more often
DOUBLINGS, HALVINGS = 24, 36  # of the search for an end


def interval_of_mean(
    values: np.ndarray, low_tail: float = TAIL, high_tail: float = TAIL
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end for the mean over the first axis, the runs, of which there are two or more.

    The tails are the probabilities that the mean is below the low end, and above the high end.
    """
    runs = len(values)
    mean = values.mean(axis=0)
    away = values - mean
    spread = np.sqrt((away**2).sum(axis=0) / (runs - 1))
    lean = skewness(away, spread) / np.sqrt(runs)
    error = spread / np.sqrt(runs)
    low = mean - error * reach(quantile_of_t(runs - 1, 1 - low_tail), lean)
    high = mean + error * reach(quantile_of_t(runs - 1, 1 - high_tail), -lean)
    return low, high


@cache
def quantile_of_t(freedom: int, probability: float) -> float:
    from scipy.special import stdtrit  # here, as SciPy takes a while to import

    return float(stdtrit(freedom, probability))


def skewness(away: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Of deviations from their mean, corrected for few runs; 0 for two and where all are equal."""
    runs = len(away)
    if runs < 3:
        return np.zeros_like(spread)
    scaled = away / np.where(spread == 0, 1, spread)
    return (scaled**3).sum(axis=0) * runs / ((runs - 1) * (runs - 2))


def reach(quantile: float, lean: np.ndarray) -> np.ndarray:
    """Standard errors between the mean and the low end; with minus `lean` the high end."""
    small = np.abs(lean) < 1e-6
    c = np.where(small, 1, lean)
    corrected = 3 / c * (np.cbrt(1 + c * (quantile - c / 6)) - 1)
    return np.where(small, quantile, np.clip(corrected, quantile, FARTHEST * quantile))


def interval_of_ratio(
    part: np.ndarray, total: np.ndarray, low_tail: float = TAIL, high_tail: float = TAIL
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end for mean(part) / mean(total) over the first axis, by the method of Fieller.

    A ratio r is inside where the interval of mean(part - r total) holds 0. An end is infinite where
    the total may be 0 or less, and NaN where the mean of the total is.
    """
    ratio = ratio_of_means(part, total)
    ends = interval_of_mean(part - ratio * total, low_tail, high_tail)
    guess = np.where(np.isnan(ratio), np.nan, (ends[1] - ends[0]) / np.abs(total).mean(axis=0))

    def above_low(r: np.ndarray) -> np.ndarray:
        return interval_of_mean(part - r * total, low_tail, TAIL)[0] <= 0

    def below_high(r: np.ndarray) -> np.ndarray:
        return interval_of_mean(part - r * total, TAIL, high_tail)[1] >= 0

    return last_inside(ratio, above_low, -guess), last_inside(ratio, below_high, guess)


def interval_of_median(
    values: np.ndarray, low_tail: float = TAIL, high_tail: float = TAIL
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end for the median over the first axis, the runs; infinite for too few of them.

    The ends are runs themselves. How many runs are below the median is binomial whatever their
    distribution is, so that the interval holds for any.
    """
    ordered = np.sort(values, axis=0)
    runs = len(ordered)
    nowhere = np.full(ordered.shape[1:], np.inf)
    low, high = (runs_left_out(runs, tail) for tail in (low_tail, high_tail))
    return (
        ordered[low - 1] if low else -nowhere,
        ordered[runs - high] if high else nowhere,
    )


@cache
def runs_left_out(runs: int, tail: float) -> int:
    """The place, from the outside, of the run that is beyond the median at most this often."""
    from scipy.special import bdtr

    return int(np.searchsorted(bdtr(np.arange(runs), runs, 0.5), tail, side="right"))


def ratio_of_means(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """NaN where the total is not above 0."""
    above, below = part.mean(axis=0), total.mean(axis=0)
    return np.where(below > 0, above / np.where(below > 0, below, 1), np.nan)


def last_inside(
    start: np.ndarray, inside: Callable[[np.ndarray], np.ndarray], step: np.ndarray
) -> np.ndarray:
    """Where `inside` ends, going from `start` by steps of this sign; infinity if it never does."""
    for _ in range(DOUBLINGS):
        further = inside(start + step) & (step != 0)
        if not further.any():
            break
        step = np.where(further, 2 * step, step)
    near, far = np.zeros_like(step), step
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        yes = inside(start + middle)
        near, far = np.where(yes, middle, near), np.where(yes, far, middle)
    return start + np.where(further, np.copysign(np.inf, step), far)
