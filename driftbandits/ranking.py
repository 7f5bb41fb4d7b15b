"""Policies over many problems: ranks, wins and losses, and regret as a share of blind play's.

Two rankings: policies as they are written, and each with its tuned settings where it has any.
"""

from typing import NamedTuple

import numpy as np

from driftbandits.experiment import tuned_name
from driftbandits.metrics import LEVEL, MORE_IS_BETTER, RESAMPLES, estimate, resampled_means
from driftbandits.results import Results

BLIND = "uniform"
FEWEST = 3  # problems that make a ranking


class Scores(NamedTuple):
    """The measure at the horizon of the same policies in every problem; less is better."""

    policies: list[str]
    problems: list[str]
    values: np.ndarray  # (problems, runs, policies)


class Standing(NamedTuple):
    """Where a policy stands in the field."""

    policy: str
    rank: float  # mean over the problems; 1 is the best
    low: float
    high: float
    wins: int  # opponents, over all problems, that it beats by a paired test
    losses: int


def ranks_of(means: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, from 1 for the lowest; ties share."""
    mine, others = means[..., :, None], means[..., None, :]
    return 0.5 + (others < mine).sum(-1) + 0.5 * (others == mine).sum(-1)


def is_field(results: Results) -> bool:
    """Whether an experiment compares policies over several problems."""
    experiment = results.experiment
    several = len(experiment.environments) >= FEWEST and len(experiment.policies) > 1
    return several and not experiment.sweep and experiment.measure not in MORE_IS_BETTER


def scores(results: Results, tuned: bool) -> Scores:
    """Of every policy as written, or with its tuned settings where it has any."""
    experiment = results.experiment
    names = [name for name, _ in experiment.policies]
    shown = {
        name: tuned_name(name) if tuned and name in experiment.tuning else name for name in names
    }
    problems = [name for name, _ in experiment.environments]
    values = [
        [results.values[experiment.label(shown[name], problem)][:, -1] for name in names]
        for problem in problems
    ]
    return Scores(names, problems, np.array(values, float).swapaxes(1, 2))


def standings(field: Scores) -> list[Standing]:
    """Every policy, best mean rank first."""
    rank = ranks_of(field.values.mean(axis=1)).mean(axis=0)
    low, high = rank_interval(field.values)
    wins, losses = wins_and_losses(field.values)
    found = [
        Standing(name, float(rank[k]), float(low[k]), float(high[k]), int(wins[k]), int(losses[k]))
        for k, name in enumerate(field.policies)
    ]
    return sorted(found, key=lambda standing: standing.rank)


def rank_interval(values: np.ndarray) -> np.ndarray:
    """Low and high end for the mean rank, with both the runs and the problems drawn anew."""
    ranks = np.array([ranks_of(resampled_means(runs)) for runs in values])
    count = len(values)
    generator = np.random.default_rng(0)
    weights = generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    means = np.einsum("rp,prk->rk", weights, ranks)
    return np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)


def wins_and_losses(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many opponents each policy is better and worse than, summed over the problems.

    By the interval of the paired difference in each problem. Where nothing differs, one comparison
    in twenty counts all the same.
    """
    wins, losses = np.zeros((2, values.shape[2]), int)
    if values.shape[1] < 2:
        return wins, losses
    for runs in values:
        _, low, high = estimate(runs[:, :, None] - runs[:, None, :])
        wins += (high < 0).sum(axis=1)
        losses += (low > 0).sum(axis=1)
    return wins, losses


def shares(field: Scores) -> np.ndarray:
    """Mean regret as a share of blind play's: (policies, problems).

    Where the best policy collects more than the greedy oracle, as in problems that reward patience,
    its regret is the zero. Without the policy `uniform` the worst one is the one.
    """
    means = field.values.mean(axis=1)
    zero = np.minimum(means.min(axis=1, keepdims=True), 0.0)
    if BLIND in field.policies:
        one = means[:, [field.policies.index(BLIND)]]
    else:
        one = means.max(axis=1, keepdims=True)
    return ((means - zero) / np.where(one > zero, one - zero, 1.0)).T
