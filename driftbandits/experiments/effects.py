"""Effects of means and medians over the runs, and the ranges that claims put them in."""

from typing import NamedTuple

import numpy as np

from driftbandits.experiments.intervals import (
    TAIL,
    interval_of_mean,
    interval_of_median,
    interval_of_ratio,
    ratio_of_means,
)

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
Tails = tuple[float, float]


class Effect(NamedTuple):
    """An estimate with its interval, which is NaN if there is none."""

    value: float
    low: float
    high: float


class Range(NamedTuple):
    """The open range in which an effect lies if a claim holds."""

    low: float
    high: float

    def verdict(self, low: float, high: float) -> str:
        """The verdict on an interval; undecided if there is none."""
        if self.low < low and high < self.high:
            return HOLDS
        return FAILS if high < self.low or low > self.high else UNDECIDED

    def tails(self, count: int) -> Tails:
        """The tail probabilities of an interval that is one of `count`.

        A low end above the range, or a high end below it, refutes the claim.
        """
        return (
            TAIL / count if np.isfinite(self.high) else TAIL,
            TAIL / count if np.isfinite(self.low) else TAIL,
        )


def mean_of(values: np.ndarray, tails: Tails) -> Effect:
    ends = interval_of_mean(values, *tails) if len(values) > 1 else (np.nan, np.nan)
    return Effect(float(values.mean()), *map(float, ends))


def ratio_of(part: np.ndarray, total: np.ndarray, tails: Tails) -> Effect:
    """The ratio of the means of two numbers per run."""
    ends = interval_of_ratio(part, total, *tails) if len(part) > 1 else (np.nan, np.nan)
    return Effect(float(ratio_of_means(part, total)), *map(float, ends))


def median_of(values: np.ndarray, tails: Tails) -> Effect:
    """The median; NaN if a run has no value."""
    if np.isnan(values).any():
        return Effect(np.nan, np.nan, np.nan)
    return Effect(float(np.median(values)), *map(float, interval_of_median(values, *tails)))


def ratios_in_runs(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """A ratio per run; NaN if the total is not above 0."""
    return np.where(total > 0, part / np.where(total > 0, total, 1), np.nan)


def largest_ratio_of(values: np.ndarray, tails: Tails) -> Effect:
    """The largest mean over the smallest, of several numbers per run: (runs, lines).

    The largest and the smallest of the runs' means are farther apart than those of the true ones,
    so their ratio is too high. But the true ratio is the highest one of all pairs: it is above the
    low end of each, at levels corrected for their number, and below the highest of the high ends.
    """
    means = values.mean(axis=0)
    ratio = float(means.max() / means.min()) if means.min() > 0 else np.nan
    if len(values) < 2:
        return Effect(ratio, np.nan, np.nan)
    low, high = interval_of_ratio(*pairs(values), *corrected(tails, values))
    return Effect(ratio, float(low.max()), float(high.max()))


def largest_median_ratio(values: np.ndarray, tails: Tails) -> Effect:
    """The same for medians: the highest median ratio of all pairs."""
    ratios = ratios_in_runs(*pairs(values))
    if np.isnan(ratios).any():
        return Effect(np.nan, np.nan, np.nan)
    low, high = interval_of_median(ratios, *corrected(tails, values))
    return Effect(float(np.median(ratios, axis=0).max()), float(low.max()), float(high.max()))


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every line against every line, itself included: (runs, pairs) twice."""
    lines = values.shape[1]
    first, second = (indices.ravel() for indices in np.indices((lines, lines)))
    return values[:, first], values[:, second]


def corrected(tails: Tails, values: np.ndarray) -> Tails:
    """The low tail for the number of pairs of different lines."""
    lines = values.shape[1]
    return tails[0] / max(lines * (lines - 1), 1), tails[1]
