"""LinUCB: a linear model of the reward for each arm, plus a bonus for its uncertainty.

    z = (context, 1);  index_k = z' theta_k + alpha * width * sqrt(z' P_k^-1 z)
    P_k = precision * I + sum z z',  theta_k = P_k^-1 sum (r - low) z  over the pulls of arm k

(low, low + width) is `spec.reward_range`: rewards count from its lower end, and the bonus scales
with its width. So by default an arm that has not been pulled looks at least as good as the best
possible one, and shifting or scaling the rewards changes no choice. With `delta`, width is replaced
by the radius of the confidence ellipsoid, for each arm on its own:

    width * sqrt(precision) + noise * sqrt(2 ln(1 / delta) + d ln(1 + t / (precision * d)))

where d = dim(z), t is the number of rewards of all arms, and noise is `spec.noise`. Without a
context z is the constant 1. Where arms have features, all arms share one model of them, from which
each arm deviates: the paper's hybrid model (`deviation`).

Paper: Li, Chu, Langford & Schapire (2010), "A contextual-bandit approach to personalized news
article recommendation", with disjoint models or, on features of the arms, the hybrid one. The
radius is that of Abbasi-Yadkori, Pal & Szepesvari (2011), "Improved algorithms for linear
stochastic bandits".

Differences from the paper: its features have no constant, and its rewards are clicks.

Use it when rewards are roughly linear in the context, arm by arm, and do not drift: it wastes few
pulls, and apart from ties the choice is deterministic. Not when the arms drift: old rewards count
for ever, so each new one changes less (see `d_lin_ucb` and `sw_lin_ucb`).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.ellipsoid import check_width, radius_of
from driftbandits.numerics.hybrid import dimension, ridge_of, uses_features
from driftbandits.numerics.hybrid_policy import fading_policy, optimistic
from driftbandits.numerics.linear import LinearPosterior, predict, prior, update


class LinUcbState(NamedTuple):
    posterior: LinearPosterior
    seen: Array  # () int32, rewards


class LinUcbTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def lin_ucb(
    spec: BanditSpec,
    *,
    alpha: float = 1.0,
    precision: float = 1.0,
    delta: float | None = None,
    deviation: float | None = 0.1,
) -> Policy:
    """Linear upper confidence bounds; it assumes that nothing drifts.

    Args:
        alpha: Scales the bonus.
        precision: Precision of the prior on each coefficient (the ridge).
        delta: Probability that an arm's bound fails; by default the bonus is as wide as the reward
            range.
        deviation: Prior variance of an arm's own coefficients, in units of that of the coefficients
            that all arms share, where arms have features. 0 means that arms with the same features
            are the same; None ignores the features and learns each arm by itself.
    """
    check_width(alpha=alpha, delta=delta, precision=precision)
    low = spec.reward_range[0]
    if uses_features(spec, deviation):
        ridge = ridge_of(precision, deviation)
        wide = radius_of(spec, delta, precision, dimension(spec, ridge))
        return fading_policy(spec, ridge, optimistic(alpha, wide), low=low)
    radius = radius_of(spec, delta, precision)

    def init(key: Key) -> LinUcbState:
        return LinUcbState(prior(spec.num_arms, spec.context_dim + 1, precision), jnp.int32(0))

    def act(key: Key, state: LinUcbState, observation: Observation) -> tuple[Decision, LinUcbState]:
        features = jnp.append(observation.context, 1.0)
        mean, spread = predict(state.posterior, features)
        width = alpha * radius(state.seen)
        probabilities = greedy_probabilities(mean + width * jnp.sqrt(spread), observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, LinUcbTicket(features, arm)), state

    def learn(state: LinUcbState, ticket: LinUcbTicket, reward: Array) -> LinUcbState:
        posterior, _ = update(state.posterior, ticket.arm, ticket.features, reward - low)
        return LinUcbState(posterior, state.seen + 1)

    return Policy(init, act, learn)
