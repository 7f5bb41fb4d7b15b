"""Linear policies on the features of the arms: the hybrid model, with or without a discount."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics import hybrid
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.hybrid import HybridSums, Ridge
from driftbandits.numerics.scores import best_score

# From a key, means, deviations, the weight of all rewards and the available arms to an arm and
# the probabilities of all arms.
Choose = Callable[[Key, Array, Array, Array, Array], tuple[Array, Array]]


class HybridTicket(NamedTuple):
    features: Array  # (s,) float32, f of the pulled arm
    arm: Array  # () int32


class FadingState(NamedTuple):
    sums: HybridSums
    squared: Any  # HybridSums with squared weights, or nothing
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
    low: float = 0.0,
    with_squares: bool = False,
) -> Policy:
    """A policy whose rewards lose weight by the discount at each new one; by default they do not.

    Args:
        spec: The problem.
        ridge: Precisions of the prior.
        choose: From means and deviations to an arm.
        discount: Factor for old rewards.
        low: What is subtracted from each reward.
        with_squares: Whether the deviation is that of a weighted sum, as in `d_lin_ucb`.
    """

    def init(key: Key) -> FadingState:
        sums = hybrid.no_sums(spec, ridge)
        return FadingState(sums, sums if with_squares else (), jnp.zeros(()))

    def act(key: Key, state: FadingState, observation: Observation) -> tuple[Decision, FadingState]:
        rows = hybrid.features_of(observation, spec)
        solution = hybrid.solve(state.sums, rows, ridge)
        if with_squares:
            spread = hybrid.weighted_spread(solution, state.squared, ridge)
        else:
            spread = hybrid.spread_of(solution, rows)
        mean = hybrid.mean_of(state.sums, solution)
        arm, probabilities = choose(
            key, mean, jnp.sqrt(spread), state.weight, observation.available
        )
        return Decision(arm, probabilities, HybridTicket(hybrid.of_arm(rows, arm), arm)), state

    def learn(state: FadingState, ticket: HybridTicket, reward: Array) -> FadingState:
        sums, squared, weight = state
        if discount is not None:
            sums, weight = hybrid.faded(sums, discount), discount**2 * weight
        features, arm = ticket
        if with_squares:
            faded = squared if discount is None else hybrid.faded(squared, discount**2)
            squared = hybrid.add(faded, arm, features, jnp.zeros(()), 1.0)
        return FadingState(hybrid.add(sums, arm, features, reward - low, 1.0), squared, weight + 1)

    def forget(old: FadingState, new: FadingState, is_new: Array) -> FadingState:
        if ridge.own is None:
            return new
        away = hybrid.elimination(old.sums, ridge, is_new)
        shared, moment = hybrid.eliminated(old.sums, away)
        sums, squared = new.sums._replace(shared=shared, shared_moment=moment), new.squared
        if with_squares:
            left = hybrid.eliminated_squares(old.squared, away, ridge)
            squared = squared._replace(shared=left)
        return new._replace(sums=sums, squared=squared)

    return Policy(init, act, learn, forget=forget)
