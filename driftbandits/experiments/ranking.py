"""Policies over many problems: ranks, wins and losses, and regret as a share of uniform play's.

Two rankings: policies as they are written, and each with its tuned settings where it has any.
"""

from typing import NamedTuple

import numpy as np

from driftbandits.choice import parse
from driftbandits.experiments.experiment import tuned_name
from driftbandits.experiments.intervals import interval_of_mean
from driftbandits.experiments.metrics import MORE_IS_BETTER, estimate
from driftbandits.experiments.results import Results

UNIFORM = "uniform"
FEWEST = 3  # problems that make a ranking


class Scores(NamedTuple):
    """The measure at the horizon of the same policies in every problem; less is better."""

    policies: list[str]
    problems: list[str]
    values: np.ndarray  # (problems, runs, policies)
    uniform: int | None  # which of the policies is `uniform`, under whatever name


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


def kinds_of(results: Results) -> list[bool]:
    """Whether a ranking is of tuned policies: both where there is something to tune."""
    return [True, False] if results.experiment.tuning else [False]


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
    written = [parse("policy", text).name for _, text in experiment.policies]
    uniform = written.index(UNIFORM) if UNIFORM in written else None
    return Scores(names, problems, np.array(values, float).swapaxes(1, 2), uniform)


def standings(field: Scores) -> list[Standing]:
    """Every policy, best mean rank first."""
    rank = ranks_of(field.values.mean(axis=1)).mean(axis=0)
    wins, losses = wins_and_losses(field.values)
    low, high = rank_interval(wins, losses)
    won, lost = wins.sum(axis=0), losses.sum(axis=0)
    found = [
        Standing(name, float(rank[k]), float(low[k]), float(high[k]), int(won[k]), int(lost[k]))
        for k, name in enumerate(field.policies)
    ]
    return sorted(found, key=lambda standing: standing.rank)


def rank_interval(wins: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end of a 95% interval for each policy's mean rank over problems like these.

    In each problem a policy ranks below those that beat it and above those that it beats. The rest
    may be on either side. The ends are those of the means of both over the problems.

    Args:
        wins: How many opponents each policy beats: (problems, policies), two problems or more.
        losses: How many opponents beat it.
    """
    policies = wins.shape[1]
    low = 1 + interval_of_mean(losses)[0]
    high = policies - interval_of_mean(wins)[0]
    return np.clip(low, 1, policies), np.clip(high, 1, policies)


def wins_and_losses(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many opponents each policy is better and worse than: (problems, policies) each.

    By the interval of the paired difference in each problem. Where nothing differs, one comparison
    in twenty counts all the same. With a single run nothing counts.
    """
    problems, runs, policies = values.shape
    wins, losses = np.zeros((2, problems, policies), int)
    if runs < 2:
        return wins, losses
    for problem, of_runs in enumerate(values):
        _, low, high = estimate(of_runs[:, :, None] - of_runs[:, None, :])
        wins[problem] = (high < 0).sum(axis=1)
        losses[problem] = (low > 0).sum(axis=1)
    return wins, losses


def shares(field: Scores) -> np.ndarray:
    """Mean regret as a share of uniform play's: (policies, problems).

    Where the best policy collects more than the greedy oracle, as in problems that reward patience,
    its regret is the zero. Without the policy `uniform` the worst one is the one.
    """
    means = field.values.mean(axis=1)
    zero = np.minimum(means.min(axis=1, keepdims=True), 0.0)
    one = means.max(axis=1, keepdims=True) if field.uniform is None else means[:, [field.uniform]]
    return ((means - zero) / np.where(one > zero, one - zero, 1.0)).T
