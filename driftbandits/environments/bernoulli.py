"""Bernoulli arms: each pays 1 with a probability that never changes, else 0.

    theta_k ~ U(0, 1) once per run;  reward_k ~ Bernoulli(theta_k)

Examples: click-through rates that do not drift.

Paper: Rotman & Wolf (2023), section 4, "Bernoulli Multi-Arm Bandit".

Use it as the problem without drift: what does a policy made for drift lose here? Not to test
forgetting: see `sinusoidal` or `abrupt`.
"""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards


def bernoulli(*, num_arms: int = 10) -> Environment:
    """Bernoulli arms that do not drift: theta ~ U(0, 1) per run.

    Args:
        num_arms: Number of arms.
    """
    check.integer(num_arms=num_arms)

    def init(key: Key) -> Array:
        return jax.random.uniform(key, (num_arms,))

    def observe(key: Key, theta: Array) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, theta: Array, context: Array) -> Rewards:
        return toss(key, theta)

    def advance(theta: Array, arm: Array) -> Array:
        return theta

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)


def no_context(num_arms: int) -> Observation:
    """No context, and every arm available."""
    return Observation(jnp.zeros(0), jnp.ones(num_arms, bool))


def toss(key: Key, mean: Array) -> Rewards:
    """A Bernoulli reward for every arm."""
    return Rewards(jax.random.bernoulli(key, mean).astype(jnp.float32), mean)
