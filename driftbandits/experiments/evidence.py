"""One number behind a verdict: an effect of means with its interval, and its verdict.

If a few runs dominate a mean (see `few_runs`), or the mean and the median contradict each other,
the effect of the medians is given too.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandits.experiments.effects import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Effect,
    Range,
    largest_median_ratio,
    largest_ratio_of,
    mean_of,
    median_of,
    ratio_of,
    ratios_in_runs,
)
from driftbandits.experiments.few_runs import what_hangs
from driftbandits.experiments.more_runs import runs_to_decide


class Median(NamedTuple):
    """What the median over the runs says."""

    median: float
    low: float
    high: float
    verdict: str


class Evidence(NamedTuple):
    """One number behind a verdict, with its interval."""

    what: str
    mean: float
    low: float
    high: float
    verdict: str
    leans: str = UNDECIDED  # the verdict of as many runs as it takes, if the mean stays
    runs_needed: float = np.nan  # so many; see `more_runs`
    few_runs: str = ""  # that a mean hangs on
    median: Median | None = None  # where it matters

    def as_json(self) -> dict[str, Any]:
        """As JSON, with None for numbers that are not finite; optional parts if they matter."""
        found = finite({name: getattr(self, name) for name in ("what", "mean", "low", "high")})
        found["verdict"] = self.verdict
        if self.few_runs:
            found["few_runs"] = self.few_runs
        if self.median:
            found["median"] = finite(self.median._asdict())
        return found


def finite(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, str) or np.isfinite(v) else None for k, v in fields.items()}


def difference(
    what: str, values: np.ndarray, count: int, hanging: str = "the differences"
) -> Evidence:
    """Judges a number per run whose mean should be above 0, one of so many comparisons."""
    values, claimed = np.asarray(values, float), Range(0.0, np.inf)
    tails = claimed.tails(count)
    effects = mean_of(values, tails), median_of(values, tails)
    return judged(what, *effects, claimed, {hanging: values})


def ratio(what: str, parts: Mapping[str, np.ndarray], claimed: Range, count: int) -> Evidence:
    """Judges whether the ratio of the means of two numbers per run is in a range.

    The names are for the reader.
    """
    part, total = (np.asarray(values, float) for values in parts.values())
    tails = claimed.tails(count)
    effects = ratio_of(part, total, tails), median_of(ratios_in_runs(part, total), tails)
    return judged(what, *effects, claimed, parts)


def largest_ratio(
    what: str, lines: Mapping[str, np.ndarray], factor: float, count: int
) -> Evidence:
    """Judges whether the largest of several means over the smallest is below a factor."""
    values, claimed = np.stack(list(lines.values()), axis=-1).astype(float), Range(-np.inf, factor)
    tails = claimed.tails(count)
    effects = largest_ratio_of(values, tails), largest_median_ratio(values, tails)
    return judged(what, *effects, claimed, lines)


def judged(
    what: str, mean: Effect, median: Effect, claimed: Range, means: Mapping[str, np.ndarray]
) -> Evidence:
    """Judges an effect of means, which are given by the names that a reader knows."""
    runs = len(next(iter(means.values())))
    verdict, other = (claimed.verdict(effect.low, effect.high) for effect in (mean, median))
    few = what_hangs(means)
    matters = bool(few) or {verdict, other} == {HOLDS, FAILS}
    return Evidence(
        what,
        *mean,
        verdict,
        claimed.verdict(mean.value, mean.value),
        runs_to_decide(mean, claimed, runs),
        few,
        Median(*median, other) if matters and not np.isnan(median.value) else None,
    )


def mirrored(found: Evidence) -> Evidence:
    """The same evidence for the opposite effect."""
    median = found.median
    return found._replace(
        mean=-found.mean,
        low=-found.high,
        high=-found.low,
        median=median and Median(-median.median, -median.high, -median.low, median.verdict),
    )
