"""D-LinTS: linear Thompson sampling that discounts old rewards.

    z = (context, 1);  beta_k ~ N(mu_k, variance * P_k^-1);  arm = argmax z' beta_k
    P_k = precision * I + sum discount^age z z',   mu_k = P_k^-1 sum discount^age r z
                                                              over the pulls of arm k

`age` is the number of rewards, of any arm, that came later. At every step the precisions and sums
of all arms fade while the prior stays, so an arm that is not pulled becomes as uncertain as at the
start. As in `lin_ts`, scores are sampled instead of the beta_k. Without a context z is the
constant 1. Where arms have features, all arms share one model of them (`deviation`), as in
`lin_ts`.

Paper: Agrawal & Goyal (2013), "Thompson sampling for contextual bandits with linear payoffs", with
the weights of Russac, Vernade & Cappe (2019), "Weighted linear bandits for non-stationary
environments".

Differences from the paper: Kim & Tewari (2020), "Randomized exploration for non-stationary
stochastic linear bandits", sample with the covariance P^-1 W P^-1, where W has squared weights (see
`d_lin_ucb`). We sample with P^-1, which is about twice as wide.

Use it when rewards are roughly linear in the context and the relation drifts steadily. Choose
`discount` so that the relation hardly changes within 1 / (1 - discount) pulls. Not when nothing
drifts: it explores for ever (`lin_ts` does not). Each step inverts a matrix per arm, which is slow
with 30 features or more.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.hybrid import ridge_of, uses_features
from driftbandits.numerics.hybrid_policy import fading_policy, sampled
from driftbandits.numerics.linear import LEAST_SPREAD
from driftbandits.numerics.ridge import Sums, add, faded, no_sums, solve
from driftbandits.numerics.scores import best_score


class DLinTsTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def d_lin_ts(
    spec: BanditSpec,
    *,
    discount: float = 0.99,
    precision: float = 1.0,
    variance: float = 1.0,
    deviation: float | None = 0.1,
) -> Policy:
    """Linear Thompson sampling that forgets at a steady rate.

    Args:
        discount: Factor for old rewards at each new one.
        precision: Precision of the prior on each coefficient (the ridge).
        variance: Variance of the rewards around the linear model; scales the exploration.
        deviation: Prior variance of an arm's own coefficients, in units of that of the coefficients
            that all arms share, where arms have features. 0 means that arms with the same features
            are the same; None ignores the features and learns each arm by itself.
    """
    check.probability(discount=discount)
    check.positive(precision=precision, variance=variance)
    if uses_features(spec, deviation):
        ridge = ridge_of(precision, deviation)
        middle = sum(spec.reward_range) / 2
        choose = sampled(variance)
        return fading_policy(spec, ridge, choose, discount=discount, low=middle, prior=-middle)

    def init(key: Key) -> Sums:
        return no_sums(spec.num_arms, spec.context_dim + 1)

    def act(key: Key, state: Sums, observation: Observation) -> tuple[Decision, Sums]:
        features = jnp.append(observation.context, 1.0)
        solution = solve(state.information, features, precision)
        mean = jnp.sum(solution * state.moment, axis=1)
        spread = jnp.maximum(solution @ features, LEAST_SPREAD)
        deviation = jnp.sqrt(variance * spread)
        arm, probabilities = best_score(key, mean, deviation, observation.available)
        return Decision(arm, probabilities, DLinTsTicket(features, arm)), state

    def learn(state: Sums, ticket: DLinTsTicket, reward: Array) -> Sums:
        return add(faded(state, discount), ticket.arm, ticket.features, reward)

    return Policy(init, act, learn)
