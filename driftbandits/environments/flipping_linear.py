"""Linear arms whose coefficients change sign again and again.

    theta_k(t) = theta_k in even stretches of `every` steps, -theta_k in odd ones
    reward_k = theta_k(t)' x_t + deviation * N(0, 1)

Contexts, coefficients and noise are those of `linear`. For every context the best arm becomes the
worst one and vice versa, as in the abrupt test of Russac, Vernade & Cappe (2019), "Weighted linear
bandits for non-stationary environments", whose coefficients jump.

Example: a preference that is reversed.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment
from driftbandits.environments.linear import LinearState, drawn_coefficients, linear_arms


def flipping_linear(
    *, num_arms: int = 10, context_dim: int = 5, deviation: float = 0.1, every: int = 1000
) -> Environment:
    """Linear arms whose coefficients change sign every so many steps.

    Args:
        num_arms: how many arms.
        context_dim: numbers in a context.
        deviation: standard deviation of the rewards.
        every: steps between two flips.
    """
    check.integer(num_arms=num_arms, context_dim=context_dim, every=every)
    check.positive(deviation=deviation)

    def coefficients(state: LinearState) -> Array:
        return jnp.where(era(state) % 2 == 1, -state.theta, state.theta)

    def era(state: LinearState) -> Array:
        return state.time // every

    init = drawn_coefficients(num_arms, context_dim)
    return linear_arms(num_arms, context_dim, deviation, init, coefficients, era)
