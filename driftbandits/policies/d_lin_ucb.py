"""D-LinUCB: linear UCB that discounts old rewards.

    z = (context, 1);  index_k = z' theta_k + alpha * width * sqrt(z' V_k^-1 W_k V_k^-1 z)
    V_k = precision * I + sum discount^age z z',   W_k = precision * I + sum discount^(2 age) z z'
    theta_k = V_k^-1 sum discount^age (r - low) z  over the pulls of arm k

`age` is the number of rewards, of any arm, that came later, so every arm forgets at every step. The
features of each arm are a block of their own, so V splits into one matrix per arm. W has squared
weights, as the variance of a weighted sum does (public code derives it from V by mistake).
(low, low + width) is `spec.reward_range`, as in `lin_ucb`. With `delta`, width is replaced by the
paper's radius, for each arm on its own:

    width * sqrt(precision) + noise * sqrt(2 ln(1 / delta) + d ln(1 + n / (precision * d)))

where d = dim(z), n = sum discount^(2 age) over the rewards of all arms, and noise is `spec.noise`.
The default discount is the paper's 1 - (B / (d T))^(2/3). The variation B of the coefficients over
the horizon T is unknown; we take 1. Without a context z is the constant 1. Where arms have
features, all arms share one model of them (`deviation`), as in `lin_ucb`, with the weights above.

Paper: Russac, Vernade & Cappe (2019), "Weighted linear bandits for non-stationary environments".

Differences from the paper: the width is constant unless `delta` is given. The paper's width has
several times the regret on Bernoulli arms.

Use it when rewards are roughly linear in the context and the relation drifts steadily. Choose
`discount` so that the relation hardly changes within 1 / (1 - discount) pulls; the default has a
long memory. Not when nothing drifts (`lin_ucb`), nor when the relation jumps and then stays: a
discount forgets all the time. Each step inverts a matrix per arm, which is slow with 30 features or
more.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.ellipsoid import check_width, radius_of
from driftbandits.numerics.hybrid import dimension, ridge_of, uses_features
from driftbandits.numerics.hybrid_policy import fading_policy, optimistic
from driftbandits.numerics.linear import LEAST_SPREAD
from driftbandits.numerics.ridge import Sums, add, faded, memory_length, no_sums, solve


class DLinUcbState(NamedTuple):
    sums: Sums
    squared: Array  # (num_arms, dim, dim) float32, sum of z z' with squared weights
    weight: Array  # () float32, sum of all squared weights


class DLinUcbTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def d_lin_ucb(
    spec: BanditSpec,
    *,
    discount: float | None = None,
    alpha: float = 1.0,
    precision: float = 1.0,
    delta: float | None = None,
    deviation: float | None = 0.1,
) -> Policy:
    """Linear upper confidence bounds that forget at a steady rate.

    Args:
        discount: Factor for old rewards at each new one; by default 1 - (d T)^(-2/3), where d is
            the dimension of the context plus 1 and T the horizon, or 10,000 if it is unknown.
        alpha: Scales the bonus.
        precision: Precision of the prior on each coefficient (the ridge).
        delta: Probability that an arm's bound fails; by default the bonus is as wide as the reward
            range.
        deviation: Prior variance of an arm's own coefficients, in units of that of the coefficients
            that all arms share, where arms have features. 0 means that arms with the same features
            are the same; None ignores the features and learns each arm by itself.
    """
    check_width(alpha=alpha, delta=delta, precision=precision)
    kept = 1 - 1 / memory_length(spec) if discount is None else discount
    check.probability(discount=kept)
    low = spec.reward_range[0]
    if uses_features(spec, deviation):
        ridge = ridge_of(precision, deviation)
        wide = optimistic(alpha, radius_of(spec, delta, precision, dimension(spec, ridge)))
        return fading_policy(spec, ridge, wide, discount=kept, low=low, with_squares=True)
    radius = radius_of(spec, delta, precision)

    def init(key: Key) -> DLinUcbState:
        sums = no_sums(spec.num_arms, spec.context_dim + 1)
        return DLinUcbState(sums, sums.information, jnp.zeros(()))

    def act(
        key: Key, state: DLinUcbState, observation: Observation
    ) -> tuple[Decision, DLinUcbState]:
        features = jnp.append(observation.context, 1.0)
        solution = solve(state.sums.information, features, precision)
        mean = jnp.sum(solution * state.sums.moment, axis=1)
        squared = state.squared + precision * jnp.eye(features.size)
        spread = jnp.einsum("ki,kij,kj->k", solution, squared, solution)
        width = alpha * radius(state.weight)
        deviation = jnp.sqrt(jnp.maximum(spread, LEAST_SPREAD))
        probabilities = greedy_probabilities(mean + width * deviation, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, DLinUcbTicket(features, arm)), state

    def learn(state: DLinUcbState, ticket: DLinUcbTicket, reward: Array) -> DLinUcbState:
        z, arm = ticket.features, ticket.arm
        pulled = (jnp.arange(spec.num_arms) == arm)[:, None, None]
        return DLinUcbState(
            add(faded(state.sums, kept), arm, z, reward - low),
            kept**2 * state.squared + pulled * jnp.outer(z, z),
            kept**2 * state.weight + 1,
        )

    return Policy(init, act, learn)
