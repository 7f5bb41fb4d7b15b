"""Gaussian Thompson sampling: normal posteriors of the means, for rewards of any scale.

    weight_k = sum of discount^age over the rewards of arm k;   mean_k their mean with these weights
    prior_weight = noise^2 / prior_deviation^2;   total_k = prior_weight + weight_k
    score_k ~ N((prior_weight prior_mean + weight_k mean_k) / total_k, noise^2 / total_k)
    arm = argmax score

This is the conjugate prior of a normal mean with known noise. With a discount below 1 the weights
of ALL arms fade with every step, so the posterior of an arm that is not pulled widens back to the
prior. A step is a decision: a reward that arrives n decisions late has the weight that would be
left had it arrived at once.

Paper: Thompson (1933). The discount is that of Qi, Wang & Zhu (2023), "Discounted Thompson sampling
for non-stationary bandit problems".

Differences from the paper: prior and noise are ours. We store weighted means instead of sums, which
would lose digits in float32.

Use it when rewards are real numbers whose noise is roughly known; set a discount such as 0.999 if
they drift. Not when the noise may be set far too low: it would trust its first rewards too much.
Not when rewards depend on an observed context.

It ignores the context.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.fading import check_discount, faded
from driftbandits.numerics.scores import best_score

LEAST_NOISE = 1e-6  # of the prior deviation; float32 holds no finer scores
LEAST_WEIGHT = 1e-30


class GaussianThompsonState(NamedTuple):
    weights: Array  # (num_arms,) float32, discounted counts of the rewards
    means: Array  # (num_arms,) float32, of the rewards, each with its weight
    time: Array  # () int32, decisions


class GaussianTicket(NamedTuple):
    arm: Array  # () int32
    time: Array  # () int32, decisions with this one


def gaussian_thompson(
    spec: BanditSpec,
    *,
    discount: float = 1.0,
    prior_mean: float | None = None,
    prior_deviation: float | None = None,
    noise: float | None = None,
) -> Policy:
    """Thompson sampling with normal posteriors, for rewards of any scale; it may forget.

    Args:
        discount: What is left of the evidence after one more decision, in (0, 1]; 1 never forgets.
        prior_mean: Expected mean of an arm before any reward; by default the middle of the reward
            range.
        prior_deviation: Standard deviation of that; by default the width of the reward range.
        noise: Standard deviation of a reward from its mean; by default the noise of the problem.
    """
    check_discount(discount)
    low, high = spec.reward_range
    centre = (low + high) / 2 if prior_mean is None else prior_mean
    width = high - low if prior_deviation is None else prior_deviation
    spread = spec.noise if noise is None else noise
    if not check.is_number(centre):
        check.fail("prior_mean", "a number", centre)
    check.positive(prior_deviation=width)
    check.not_negative(noise=spread)
    spread = max(spread, LEAST_NOISE * width)
    prior_weight = (spread / width) ** 2  # in rewards

    def init(key: Key) -> GaussianThompsonState:
        nothing = jnp.zeros(spec.num_arms)
        return GaussianThompsonState(nothing, nothing, jnp.int32(0))

    def act(
        key: Key, state: GaussianThompsonState, observation: Observation
    ) -> tuple[Decision, GaussianThompsonState]:
        total = state.weights + prior_weight
        means = centre + (state.means - centre) * (state.weights / total)
        deviations = spread * jax.lax.rsqrt(total)
        arm, probabilities = best_score(key, means, deviations, observation.available)
        time = state.time + 1
        later = state._replace(weights=discount * state.weights, time=time)
        return Decision(arm, probabilities, GaussianTicket(arm, time)), later

    def learn(
        state: GaussianThompsonState, ticket: GaussianTicket, reward: Array
    ) -> GaussianThompsonState:
        pulled = jnp.arange(spec.num_arms) == ticket.arm
        weight = jnp.where(pulled, faded(discount, state.time, ticket.time), 0.0)
        weights = state.weights + weight
        gain = weight / jnp.maximum(weights, LEAST_WEIGHT)
        return state._replace(weights=weights, means=state.means + gain * (reward - state.means))

    return Policy(init, act, learn)
