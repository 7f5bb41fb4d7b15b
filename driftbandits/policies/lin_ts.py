"""LinTS: Thompson sampling with a linear model of the reward for each arm.

    z = (context, 1);  beta_k ~ N(mu_k, variance * P_k^-1);  arm = argmax z' beta_k
    P_k = precision * I + sum z z',  mu_k = P_k^-1 sum r z  over the pulls of arm k

We sample scores instead of the beta_k: z' beta_k ~ N(z' mu_k, variance * z' P_k^-1 z), independent
over the arms. Without a context z is the constant 1. Where arms have features, all arms share one
model of them, from which each arm deviates (`deviation`; see `lin_ucb`); the scores are sampled
independently all the same, so that their probabilities are known exactly.

Paper: Agrawal & Goyal (2013), "Thompson sampling for contextual bandits with linear payoffs", with
one model per arm.

Use it when the reward is roughly linear in the context and the relation does not change. Not when
it drifts (`d_lin_ts` forgets) or is nonlinear (`neural_linear`).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.hybrid import ridge_of, uses_features
from driftbandits.numerics.hybrid_policy import fading_policy, sampled
from driftbandits.numerics.linear import LinearPosterior, predict, prior, update
from driftbandits.numerics.scores import best_score


class LinTsTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def lin_ts(
    spec: BanditSpec,
    *,
    precision: float = 1.0,
    variance: float = 1.0,
    deviation: float | None = 0.1,
) -> Policy:
    """Linear Thompson sampling; it assumes that nothing drifts.

    Args:
        precision: Precision of the prior on each coefficient (the ridge).
        variance: Variance of the rewards around the linear model; scales the exploration.
        deviation: Prior variance of an arm's own coefficients, in units of that of the coefficients
            that all arms share, where arms have features. 0 means that arms with the same features
            are the same; None ignores the features and learns each arm by itself.
    """
    check.positive(precision=precision, variance=variance)
    if uses_features(spec, deviation):
        middle = sum(spec.reward_range) / 2
        ridge = ridge_of(precision, deviation)
        return fading_policy(spec, ridge, sampled(variance), low=middle, prior=-middle)

    def init(key: Key) -> LinearPosterior:
        return prior(spec.num_arms, spec.context_dim + 1, precision)

    def act(
        key: Key, state: LinearPosterior, observation: Observation
    ) -> tuple[Decision, LinearPosterior]:
        features = jnp.append(observation.context, 1.0)
        mean, spread = predict(state, features)
        deviation = jnp.sqrt(variance * spread)
        arm, probabilities = best_score(key, mean, deviation, observation.available)
        return Decision(arm, probabilities, LinTsTicket(features, arm)), state

    def learn(state: LinearPosterior, ticket: LinTsTicket, reward: Array) -> LinearPosterior:
        return update(state, ticket.arm, ticket.features, reward)[0]

    return Policy(init, act, learn)
