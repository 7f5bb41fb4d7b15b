"""D-LinTS: linear Thompson sampling that discounts old rewards.

    z = (context, 1);  beta_k ~ N(mu_k, variance * P_k^-1);  arm = argmax z' beta_k
    P_k = precision * I + sum discount^age z z',   mu_k = P_k^-1 sum discount^age r z
                                                              over the pulls of arm k

lin_ts of Agrawal & Goyal (2013), "Thompson sampling for contextual bandits with linear payoffs",
with the weights of Russac, Vernade & Cappe (2019), "Weighted linear bandits for non-stationary
environments". `age` counts the rewards of all arms that came later: at every step the precisions
and sums of all arms fade, and the prior is put back, so that an arm that is not pulled becomes as
unknown as at the start. As in lin_ts scores are sampled in place of the beta_k. Kim & Tewari
(2020), "Randomized exploration for non-stationary stochastic linear bandits", sample with the
covariance P^-1 W P^-1, where W has squared weights (see d_lin_ucb); this is P^-1, about twice as
much. Without a context z is the constant 1.

Use it when rewards depend on a context about linearly and that dependence drifts steadily. Set
`discount` so that 1 / (1 - discount) is the number of pulls over which it hardly changes. Not when
nothing drifts: it explores for ever (lin_ts does not). It inverts a matrix per arm at every step,
which is slow with 30 features or more.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.numerics.linear import LEAST_SPREAD
from driftbandits.numerics.ridge import Sums, add, faded, no_sums, solve
from driftbandits.numerics.scores import best_score


class DLinTsTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def d_lin_ts(
    spec: BanditSpec, *, discount: float = 0.99, precision: float = 1.0, variance: float = 1.0
) -> Policy:
    """Linear Thompson sampling that forgets at a steady rate.

    Args:
        discount: of old rewards at each new one.
        precision: of the prior on each coefficient (the ridge).
        variance: of the rewards around the linear model; scales the exploration.
    """
    check.probability(discount=discount)
    check.positive(precision=precision, variance=variance)

    def init(key: Key) -> Sums:
        return no_sums(spec.num_arms, spec.context_dim + 1)

    def act(key: Key, state: Sums, context: Array, available: Array) -> tuple[Decision, Sums]:
        features = jnp.append(context, 1.0)
        solution = solve(state.information, features, precision)
        mean = jnp.sum(solution * state.moment, axis=1)
        spread = jnp.maximum(solution @ features, LEAST_SPREAD)
        deviation = jnp.sqrt(variance * spread)
        arm, probabilities = best_score(key, mean, deviation, available)
        return Decision(arm, probabilities, DLinTsTicket(features, arm)), state

    def learn(state: Sums, ticket: DLinTsTicket, reward: Array) -> Sums:
        return add(faded(state, discount), ticket.arm, ticket.features, reward)

    return Policy(init, act, learn)
