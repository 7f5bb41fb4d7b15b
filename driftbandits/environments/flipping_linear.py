"""Flipping linear arms: linear arms whose coefficients change sign again and again.

    theta_k(t) = theta_k in even stretches of `every` steps, -theta_k in odd ones
    reward_k = theta_k(t)' x_t + deviation * N(0, 1)

Contexts, coefficients and noise are those of `linear`. For every context the best arm becomes the
worst and vice versa.

Example: a preference that is reversed.

Paper: Russac, Vernade & Cappe (2019), "Weighted linear bandits for non-stationary environments",
whose abrupt test has coefficients that jump.

Use it when you want to see how fast a policy with contexts recovers from a jump. Not when the
change should be gradual: see `rotating_linear`.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment
from driftbandits.environments.linear import LinearState, drawn_coefficients, linear_arms


def flipping_linear(
    *, num_arms: int = 10, context_dim: int = 5, deviation: float = 0.1, every: int = 1000
) -> Environment:
    """Linear arms whose coefficients change sign at regular times.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context.
        deviation: Standard deviation of the rewards.
        every: Steps between two flips.
    """
    check.integer(num_arms=num_arms, context_dim=context_dim, every=every)
    check.positive(deviation=deviation)

    def coefficients(state: LinearState) -> Array:
        return jnp.where(era(state) % 2 == 1, -state.theta, state.theta)

    def era(state: LinearState) -> Array:
        return state.time // every

    init = drawn_coefficients(num_arms, context_dim)
    return linear_arms(num_arms, context_dim, deviation, init, coefficients, era)
