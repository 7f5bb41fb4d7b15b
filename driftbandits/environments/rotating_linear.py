"""Rotating linear arms: linear arms whose coefficients rotate slowly.

    theta_k(t) = cos(wt) u_k + sin(wt) v_k,   w = 2 pi / period
    reward_k = theta_k(t)' x_t + deviation * N(0, 1)

u_k and v_k are orthonormal and drawn once per run, so each arm turns in its own plane. Contexts and
noise are those of `linear`. The policy does not see the time.

Example: tastes that change with the seasons.

Paper: Russac, Vernade & Cappe (2019), "Weighted linear bandits for non-stationary environments",
where such coefficients turn slowly in two dimensions.

Use it when the relation between context and reward should drift steadily. Not when it should jump:
see `flipping_linear`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.environments.linear import linear_arms, on_sphere, unit


class RotatingLinearState(NamedTuple):
    begin: Array  # (num_arms, context_dim) float32, the coefficients at time 0
    later: Array  # (num_arms, context_dim) float32, those a quarter of a period later
    time: Array  # () int32


def rotating_linear(
    *, num_arms: int = 10, context_dim: int = 5, deviation: float = 0.1, period: int = 2000
) -> Environment:
    """Linear arms whose coefficients rotate, each arm's in its own plane.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context, at least two.
        deviation: Standard deviation of the rewards.
        period: Steps of one full turn.
    """
    check.integer(num_arms=num_arms, period=period)
    check.integer(context_dim=context_dim, at_least=2)
    check.positive(deviation=deviation)

    def init(key: Key) -> RotatingLinearState:
        begin_key, later_key = jax.random.split(key)
        begin = on_sphere(begin_key, (num_arms, context_dim))
        other = on_sphere(later_key, (num_arms, context_dim))
        along = jnp.sum(begin * other, axis=1, keepdims=True)
        return RotatingLinearState(begin, unit(other - along * begin), jnp.int32(0))

    def coefficients(state: RotatingLinearState) -> Array:
        angle = 2 * jnp.pi * ((state.time % period) / period)
        return jnp.cos(angle) * state.begin + jnp.sin(angle) * state.later

    return linear_arms(num_arms, context_dim, deviation, init, coefficients)
