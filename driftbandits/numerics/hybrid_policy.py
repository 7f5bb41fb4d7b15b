"""Linear policies on the features of the arms: the hybrid model, with or without a discount."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics import hybrid
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.hybrid import Ridge
from driftbandits.numerics.hybrid_precision import Split, in_float64, joined, split
from driftbandits.numerics.scores import best_score

# From a key, means, deviations, the weight of all rewards and the available arms to an arm and
# the probabilities of all arms.
Choose = Callable[[Key, Array, Array, Array, Array], tuple[Array, Array]]


class HybridTicket(NamedTuple):
    features: Array  # (s,) float32, f of the pulled arm
    arm: Array  # () int32


class FadingState(NamedTuple):
    sums: Split  # of HybridSums
    squared: Any  # the same with squared weights, or nothing
    weight: Array  # () float32, sum of the squared weights of all rewards


def optimistic(alpha: float, radius: Callable[[Array], Array | float]) -> Choose:
    """The highest mean plus `alpha * radius` deviations, where the radius depends on the weight."""

    def choose(
        key: Key, mean: Array, deviation: Array, weight: Array, available: Array
    ) -> tuple[Array, Array]:
        probabilities = greedy_probabilities(mean + alpha * radius(weight) * deviation, available)
        return draw(key, probabilities), probabilities

    return choose


def sampled(variance: float) -> Choose:
    """The highest of independent normal scores: Thompson sampling."""

    def choose(
        key: Key, mean: Array, deviation: Array, weight: Array, available: Array
    ) -> tuple[Array, Array]:
        return best_score(key, mean, jnp.sqrt(variance) * deviation, available)

    return choose


def fading_policy(
    spec: BanditSpec,
    ridge: Ridge,
    choose: Choose,
    *,
    discount: float | None = None,
    low: float,
    prior: float | None = None,
    with_squares: bool = False,
) -> Policy:
    """A policy whose rewards lose weight by the discount at each new one; by default they do not.

    Args:
        spec: The problem.
        ridge: Precisions of the prior.
        choose: From means and deviations to an arm.
        discount: Factor for old rewards.
        low: What is subtracted from each reward, so that sums of large rewards lose no digits.
        prior: What is expected of every reward before the first one, after the subtraction. None
            is 0.
        with_squares: Whether the deviation is that of a weighted sum, as in `d_lin_ucb`.
    """

    def init(key: Key) -> FadingState:
        sums = hybrid.no_sums(spec, ridge)
        return FadingState(sums, sums if with_squares else (), jnp.zeros(()))

    def act(key: Key, state: FadingState, observation: Observation) -> tuple[Decision, FadingState]:
        rows = hybrid.features_of(observation, spec)
        mean, deviation = predict(state, rows)
        arm, probabilities = choose(key, mean, deviation, state.weight, observation.available)
        return Decision(arm, probabilities, HybridTicket(hybrid.of_arm(rows, arm), arm)), state

    @in_float64
    def predict(state: FadingState, rows: Array) -> tuple[Array, Array]:
        """The mean and the deviation of every arm."""
        sums = joined(state.sums)
        solution = hybrid.solve(sums, rows, ridge)
        if with_squares:
            spread = hybrid.weighted_spread(solution, joined(state.squared), ridge)
        else:
            spread = hybrid.spread_of(solution, rows)
        mean = hybrid.mean_of(sums, solution)
        if prior is not None:
            mean += prior * hybrid.share_of_prior(solution, spec, ridge)
        return mean, jnp.sqrt(spread)

    @in_float64
    def learn(state: FadingState, ticket: HybridTicket, reward: Array) -> FadingState:
        sums, squared, weight = joined(state.sums), state.squared, state.weight
        if discount is not None:
            sums, weight = hybrid.faded(sums, discount), discount**2 * weight
        features, arm = ticket
        if with_squares:
            squared = joined(squared)
            faded = squared if discount is None else hybrid.faded(squared, discount**2)
            squared = split(hybrid.add(faded, arm, features, jnp.zeros(()), 1.0))
        sums = hybrid.add(sums, arm, features, reward - low, 1.0)
        return FadingState(split(sums), squared, weight + 1)

    @in_float64
    def forget(old: FadingState, new: FadingState, is_new: Array) -> FadingState:
        if ridge.own is None:
            return new
        sums, squared = joined(new.sums), new.squared
        away = hybrid.elimination(joined(old.sums), ridge, is_new)
        shared, moment = hybrid.eliminated(joined(old.sums), away)
        sums = sums._replace(shared=shared, shared_moment=moment)
        if with_squares:
            left = hybrid.eliminated_squares(joined(old.squared), away, ridge)
            squared = split(joined(squared)._replace(shared=left))
        return new._replace(sums=split(sums), squared=squared)

    return Policy(init, act, learn, forget=forget)
