"""Measures of traces, and means over runs with their intervals.

Every measure maps a policy's trace, and the oracle's trace in the same worlds, to a number per run
and recorded time. Intervals are 95% intervals over the runs (`intervals`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftbandits.experiments.few_runs import few_runs
from driftbandits.experiments.intervals import LEVEL, interval_of_mean, interval_of_median
from driftbandits.simulation.traces import Trace

WINDOWS = 20  # in a horizon


def regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Expected regret: the mean of the best available arm at each pull minus the pulled arm's."""
    return trace.regret


def realised_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """The paper's formula: the highest sampled reward of the available arms minus the reward."""
    return trace.realised_regret


def mean_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Expected regret per pull so far: R_t / t."""
    return trace.regret / trace.times


def policy_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """The oracle's expected reward on its own trajectory minus the policy's on its own.

    It can fall where pulls wear arms out: an arm that the policy has spared pays more later.
    """
    if oracle is None:
        raise TypeError("policy_regret needs the oracle's trace in the same worlds")
    return oracle.expected_reward - trace.expected_reward


def own_count_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Where pulls change the means: the best mean at the policy's own counts minus the pulled one.

    The simulator takes the best arm in the policy's own world, so this equals `regret`. The name
    says which of the two readings is meant.
    """
    return regret(trace)


def window_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Regret per pull over a twentieth of the horizon before each recorded time."""
    length = -(-int(trace.times[-1]) // WINDOWS)
    start = np.searchsorted(trace.times, trace.times - length, side="right") - 1
    times = np.where(start < 0, 0, trace.times[start])
    before = np.where(start < 0, 0.0, trace.regret[:, start])
    return (trace.regret - before) / (trace.times - times)


def best_share(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """The share of pulls so far of an arm that was best at that time."""
    return trace.best_pulls / trace.times


def recovery_time(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Mean number of pulls until the policy recovers from a change, over the changes so far.

    A policy has recovered when at least half of the pulls between two recorded times are of a best
    arm. Counting begins at the first recorded time after the change, so the result is too short by
    up to one such interval. The next change, or the end of the run, ends the count of a policy that
    has not recovered. Before the first change the measure is 0.
    """
    pulls = np.diff(trace.best_pulls, prepend=0)
    changed = np.diff(trace.changes, prepend=0) > 0
    steps = np.diff(trace.times, prepend=0)
    lost = np.zeros(trace.regret.shape)
    recovering = np.zeros(len(lost), bool)
    for point, length in enumerate(steps):
        recovering &= 2 * pulls[:, point] < length
        lost[:, point] = recovering * length
        recovering |= changed[:, point]
    return lost.cumsum(axis=1) / np.maximum(trace.changes, 1)


MEASURES: dict[str, Callable[[Trace, Trace | None], np.ndarray]] = {
    "regret": regret,
    "mean_regret": mean_regret,
    "realised_regret": realised_regret,
    "policy_regret": policy_regret,
    "own_count_regret": own_count_regret,
    "window_regret": window_regret,
    "best_share": best_share,
    "recovery_time": recovery_time,
}
MORE_IS_BETTER = {"best_share"}


class Estimate(NamedTuple):
    """A mean over runs with its 95% interval.

    Each attribute is an array without the axis of the runs.

    Attributes:
        mean: The mean over the runs.
        low: The lower end of the interval. NaN if there is only one run.
        high: The upper end of the interval. NaN if there is only one run.

    Example:
        ```python
        from driftbandits import Estimate, estimate

        found = estimate([12.0, 15.0, 11.0, 14.0])
        assert isinstance(found, Estimate)
        print(f"{found.mean:.1f} ({found.low:.1f} to {found.high:.1f})")
        ```
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def estimate(values: np.ndarray) -> Estimate:
    """Returns the mean over runs with its 95% interval.

    The interval allows for skewed values, which regrets often are.

    Args:
        values: One number per run, or an array whose first axis is the runs.

    Returns:
        The mean and the ends of its interval, for each entry of the other axes.

    Example:
        ```python
        from driftbandits import estimate, simulate

        trace = simulate("ucb", "sinusoidal", horizon=200, runs=4)
        mean, low, high = estimate(trace.regret[:, -1])
        print(f"regret {mean:.1f} ({low:.1f} to {high:.1f})")
        ```
    """
    values = np.asarray(values, float)
    mean = values.mean(axis=0)
    if len(values) < 2:
        nothing = np.full_like(mean, np.nan)
        return Estimate(mean, nothing, nothing)
    return Estimate(mean, *interval_of_mean(values))


class Summary(NamedTuple):
    """A measure at the horizon over all runs: its mean, its median and its bad end.

    `Results.final` returns one for each curve. The bad end is the high one for a regret and the
    low one for `best_share`.

    Attributes:
        mean: The mean over the runs.
        low: The lower end of the 95% interval of the mean. NaN if there is only one run.
        high: The upper end of the same interval.
        median: The median over the runs.
        median_low: The lower end of the 95% interval of the median. Infinite with fewer than six
            runs.
        median_high: The upper end of the same interval.
        percentile_95: 95% of the runs are better than this.
        worst: The worst run.
        few_runs: If a few runs make up at least half of the mean, how many; otherwise 0.
        few_share: The share of the mean that these runs make up; otherwise 0.

    Example:
        ```python
        from driftbandits import Summary, compare

        final = compare("ucb", horizon=200, runs=4).final()["ucb"]
        assert isinstance(final, Summary)
        print(final.mean, final.percentile_95, final.worst)
        ```
    """

    mean: float
    low: float  # NaN where there is only one run
    high: float
    median: float
    median_low: float  # infinite where there are fewer than six
    median_high: float
    percentile_95: float  # 95% of the runs are better
    worst: float
    few_runs: int  # that make at least half of the mean; 0 where these are not few
    few_share: float  # of the mean that they make

    def as_json(self) -> dict[str, float | None]:
        """Returns the numbers as a dictionary for JSON, with None for an end that is not finite."""
        return {name: x if np.isfinite(x) else None for name, x in self._asdict().items()}


def summarise(values: np.ndarray, measure: str) -> Summary:
    """Summarises a number per run; which end is the bad one depends on the measure."""
    values = np.asarray(values, float)
    more = measure in MORE_IS_BETTER
    tail = np.quantile(values, 1 - LEVEL if more else LEVEL)
    worst = values.min() if more else values.max()
    numbers = *estimate(values), np.median(values), *interval_of_median(values), tail, worst
    few = few_runs(values)
    return Summary._make([*map(float, numbers), few.runs, few.share])


def paired_difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Returns the mean of `first - second` over paired runs, with its 95% interval.

    Run i of one policy meets the same world as run i of another with the same seed. Differences
    within pairs vary less than the values themselves, so this interval is the one to compare two
    policies by: if it lies above 0, the first is larger.

    Args:
        first: One number per run, or an array whose first axis is the runs.
        second: The same for the other policy, in the same worlds and of the same shape.

    Returns:
        The mean difference and the ends of its interval.

    Raises:
        ValueError: If the shapes differ.

    Example:
        ```python
        from driftbandits import compare, paired_difference

        results = compare(["ucb", "uniform"], horizon=200, runs=4)
        uniform, ucb = results.values["uniform"], results.values["ucb"]
        mean, low, high = paired_difference(uniform[:, -1], ucb[:, -1])
        print(f"uniform has {mean:.1f} more regret ({low:.1f} to {high:.1f})")
        ```
    """
    if np.shape(first) != np.shape(second):
        raise ValueError(
            f"second must be of the shape {np.shape(first)} of first, got {np.shape(second)}"
        )
    return estimate(np.asarray(first, float) - np.asarray(second, float))
