"""Intervals that hold what they promise, also where runs are few and skewed."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import stdtrit

from driftbandits.experiments.intervals import (
    interval_of_mean,
    interval_of_median,
    interval_of_ratio,
)
from tools.calibration import Ends, percentile, samples

EXPERIMENTS = 20_000
WANTED = ["normal", "exponential", "log-normal(1)", "paired difference"]


def coverage(
    runs: int, method: Callable[[np.ndarray], Ends] = interval_of_mean, experiments=EXPERIMENTS
) -> dict[str, float]:
    """The share of experiments whose interval holds the mean, by distribution."""
    found = {}
    for name, values, mean in samples(np.random.default_rng(runs), runs, experiments):
        low, high = method(values)
        found[name] = float(((low <= mean) & (mean <= high)).mean())
    return found


@pytest.mark.parametrize("runs", [20, 50, 100])
def test_intervals_hold_the_mean_of_skewed_runs(runs: int) -> None:
    found = coverage(runs)
    for name in WANTED:
        assert 0.93 <= found[name] <= 0.97, name
    if runs == 100:
        assert found["5% locked"] >= 0.95


def test_the_intervals_of_0_10_did_not() -> None:
    """That the test above can fail."""
    found = coverage(20, percentile, 1000)
    assert found["log-normal(1)"] < 0.91
    assert found["paired difference"] < 0.93


def test_runs_that_are_not_there_are_not_seen() -> None:
    """With 20 runs, none of which locks in 36% of the experiments, no method knows of it."""
    assert coverage(20)["5% locked"] == pytest.approx(1 - 0.95**20, abs=0.02)


def test_even_runs_have_the_interval_of_student() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0])
    reach = stdtrit(7, 0.975) * values.std(ddof=1) / 8**0.5
    assert interval_of_mean(values) == pytest.approx((5 - reach, 5 + reach))


def test_skewed_runs_reach_farther_where_their_tail_is() -> None:
    values = np.random.default_rng(0).lognormal(size=30)
    low, high = interval_of_mean(values)
    mirrored = interval_of_mean(-values)
    assert mirrored == pytest.approx((-high, -low))
    assert high - values.mean() > 1.2 * (values.mean() - low)
    moved = interval_of_mean(7 + 1e150 * values)
    assert moved == pytest.approx((1e150 * low, 1e150 * high))


@pytest.mark.parametrize("runs", [8, 20, 1000])
def test_one_outlier_reaches_twice_as_far_at_most(runs: int) -> None:
    values = np.append(np.zeros(runs - 1), 1.0)
    reach = stdtrit(runs - 1, 0.975) / runs
    assert interval_of_mean(values)[1] - 1 / runs == pytest.approx(2 * reach)
    assert interval_of_mean(-values)[0] + 1 / runs == pytest.approx(-2 * reach)


@pytest.mark.parametrize("runs", [2, 3, 50])
def test_equal_runs_have_an_interval_of_no_width(runs: int) -> None:
    assert interval_of_mean(np.full((runs, 2), 0.5))[1].tolist() == [0.5, 0.5]
    ends = interval_of_ratio(np.full(runs, 3.0), np.full(runs, 2.0))
    assert [float(end) for end in ends] == pytest.approx([1.5, 1.5])


def test_smaller_tails_are_farther_out() -> None:
    values = np.random.default_rng(0).exponential(size=50)
    (low, high), (lower, higher) = interval_of_mean(values), interval_of_mean(values, 0.001)
    assert lower < low
    assert higher == high


@pytest.mark.parametrize("runs", [20, 100])
def test_ratios_hold_theirs(runs: int) -> None:
    generator = np.random.default_rng(1)
    shape = runs, 1000
    world = generator.lognormal(0, 0.5, shape)
    skewed, other = (world * generator.lognormal(0, 1, shape) for _ in range(2))
    even = generator.normal(3, 0.5, shape)
    mean = np.exp(0.5 + 0.125)
    cases = [(skewed, other, 1), (skewed, even, mean / 3), (even, skewed, 3 / mean)]
    for part, total, ratio in cases:
        low, high = interval_of_ratio(part, total)
        assert 0.915 <= (~(low > ratio) & ~(high < ratio)).mean() <= 0.98


def test_a_ratio_to_what_may_be_nothing_has_no_high_end() -> None:
    total = np.array([-1.0, 2.0, 1.0, -1.5])
    assert interval_of_ratio(np.ones(4), total)[1] == np.inf
    assert np.isnan(interval_of_ratio(np.ones(4), -np.ones(4))).all()


@pytest.mark.parametrize("runs", [6, 20, 101])
def test_intervals_of_medians_hold_for_any_distribution(runs: int) -> None:
    generator = np.random.default_rng(runs)
    medians = {"normal": 0.0, "exponential": np.log(2), "log-normal(1)": 1.0}
    for name, values, _ in samples(generator, runs, EXPERIMENTS):
        if name in medians:
            low, high = interval_of_median(values)
            assert 0.945 <= ((low <= medians[name]) & (medians[name] <= high)).mean() <= 0.98, name


def test_the_ends_of_a_median_are_runs() -> None:
    """Of 20 runs, the sixth from either side, as tables of the sign test have it."""
    values = np.random.default_rng(0).permutation(20) + 1.0
    assert interval_of_median(values) == (6, 15)
    assert interval_of_median(values, 0.001) == (3, 15)
    assert interval_of_median(values[:5]) == (-np.inf, np.inf), "five are too few"
    ends = interval_of_median(np.stack([values, -values], axis=1))
    assert [end.tolist() for end in ends] == [[6, -15], [15, -6]]
