"""Intervals of mean ranks: they hold where policies are close, and say so where runs are few."""

import numpy as np

from driftbandits.experiments.ranking import rank_interval, ranks_of, wins_and_losses
from tools.calibration import CLOSE, log_means, paired_ranks, percentile_of_ranks, regrets


def drawn(problems: int, experiments: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """True mean ranks of policies that are close, and experiments with them."""
    generator = np.random.default_rng(0)
    truth = ranks_of(log_means(generator, CLOSE, 20_000)).mean(axis=0)
    return truth, [
        regrets(generator, log_means(generator, CLOSE, problems)) for _ in range(experiments)
    ]


def test_intervals_hold_where_policies_are_close() -> None:
    truth, experiments = drawn(problems=30, experiments=50)
    inside = [
        (low <= truth) & (truth <= high)
        for low, high in (paired_ranks(each) for each in experiments)
    ]
    assert np.mean(inside, axis=0).min() >= 0.95


def test_those_of_0_12_did_not() -> None:
    """That the test above can fail."""
    truth, experiments = drawn(problems=30, experiments=5)
    ends = [percentile_of_ranks(each) for each in experiments]
    assert np.mean([(low <= truth) & (truth <= high) for low, high in ends]) < 0.8


def test_ends_by_hand() -> None:
    """Always beaten by one of three opponents, always better than another."""
    wins, losses = np.array([[3, 1, 1, 0]] * 5), np.array([[0, 1, 1, 3]] * 5)
    low, high = rank_interval(wins, losses)
    assert low.tolist() == [1, 2, 2, 4]
    assert high.tolist() == [1, 3, 3, 4]


def test_problems_that_disagree_widen_the_interval() -> None:
    wins = np.array([[1, 0], [0, 1], [1, 0]])
    low, high = rank_interval(wins, 1 - wins)
    assert low.tolist() == [1, 1]
    assert high.tolist() == [2, 2]


def test_a_single_run_says_nothing_about_ranks() -> None:
    wins, losses = wins_and_losses(np.arange(12.0).reshape(4, 1, 3))
    assert not wins.any()
    assert not losses.any()
    low, high = rank_interval(wins, losses)
    assert low.tolist() == [1, 1, 1]
    assert high.tolist() == [3, 3, 3]
