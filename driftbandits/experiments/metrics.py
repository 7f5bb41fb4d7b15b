"""From traces to regrets, means over runs and their intervals.

Every measure takes a policy's trace and the oracle's trace in the same worlds to a number per run
and recorded time. Intervals are 95% intervals over the runs (`intervals`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftbandits.experiments.few_runs import few_runs
from driftbandits.experiments.intervals import LEVEL, interval_of_mean, interval_of_median
from driftbandits.simulation.traces import Trace

RESAMPLES = 2000
WINDOWS = 20  # in a horizon


def regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Expected regret: the best available arm's mean of the moment minus the pulled arm's."""
    return trace.regret


def realised_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """The paper's formula: the highest sampled reward of the available arms minus the received."""
    return trace.realised_regret


def mean_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """R_t / t, the expected regret per step so far."""
    return trace.regret / trace.times


def policy_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """What the oracle expects on its own trajectory minus what the policy expects on its own.

    It can fall: an arm that the policy has spared pays more later on.
    """
    if oracle is None:
        raise TypeError("policy_regret needs the oracle's trace in the same worlds")
    return oracle.expected_reward - trace.expected_reward


def own_count_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Where pulls change the means: the best mean at the policy's own counts minus the pulled one.

    The simulator takes the best arm of the moment in the policy's own world, so this is what
    `regret` is there; the name says which of the two readings is meant.
    """
    return regret(trace)


def window_regret(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Regret per step over the last twentieth of the horizon before each recorded time."""
    length = -(-int(trace.times[-1]) // WINDOWS)
    start = np.searchsorted(trace.times, trace.times - length, side="right") - 1
    times = np.where(start < 0, 0, trace.times[start])
    before = np.where(start < 0, 0.0, trace.regret[:, start])
    return (trace.regret - before) / (trace.times - times)


def best_share(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """The share of steps so far on an arm that was best at the moment."""
    return trace.best_pulls / trace.times


def recovery_time(trace: Trace, oracle: Trace | None = None) -> np.ndarray:
    """Mean number of steps that the policy took to recover from a change, over the changes so far.

    It has recovered when at least half of the pulls between two recorded times are of a best arm.
    Counting begins with the first recorded time after the change, so that it is up to one such
    interval too short. A change that comes before it has recovered, or the end, cuts it short.
    Before the first change it is 0.
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
    """A mean over runs and its interval, which is NaN where there is only one run."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def resampled_means(values: np.ndarray) -> np.ndarray:
    """Means over the first axis, the runs, resampled with replacement: (RESAMPLES, ...).

    The same number of runs gives the same draws, so that resamples of two policies are paired.
    """
    return np.tensordot(resampling_weights(len(values)), values, axes=1)


def resampling_weights(count: int, seed: int = 0) -> np.ndarray:
    """How often each of `count` things is drawn, as a share, in every resample."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count


def interval(center: np.ndarray, resamples: np.ndarray, runs: int) -> np.ndarray:
    """Low and high end of the 95% bootstrap interval about an estimate.

    The central 95% of few resampled runs are too narrow. Their distance from the estimate is
    widened by what Student's t and the unbiased variance do to the interval of a mean.
    """
    from scipy.special import ndtri, stdtrit  # SciPy takes a while

    ends = np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    student, normal = stdtrit(runs - 1, (1 + LEVEL) / 2), ndtri((1 + LEVEL) / 2)
    return center + (ends - center) * student / normal * np.sqrt(runs / (runs - 1))


def estimate(values: np.ndarray) -> Estimate:
    """Mean over the first axis, the runs, with its interval."""
    values = np.asarray(values, float)
    mean = values.mean(axis=0)
    if len(values) < 2:
        nothing = np.full_like(mean, np.nan)
        return Estimate(mean, nothing, nothing)
    return Estimate(mean, *interval_of_mean(values))


class Summary(NamedTuple):
    """A measure over the runs: its mean with an interval, and how bad it gets."""

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
        """An end that does not exist is None."""
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
    """Mean of first - second over runs in the same worlds; an interval above 0: first is larger."""
    if np.shape(first) != np.shape(second):
        raise ValueError(
            f"second must be of the shape {np.shape(first)} of first, got {np.shape(second)}"
        )
    return estimate(np.asarray(first, float) - np.asarray(second, float))
