"""Rotating Wheel: the Wheel whose quadrants turn, while the policy sees neither angle nor time.

    (x', y') = (cos wt x + sin wt y, -sin wt x + cos wt y),   w = 2 pi / period

The context is (x, y); the quadrant of (x', y') decides which arm is rich, as in `wheel`.

Paper: Rotman & Wolf (2023), section 4, "Wheel Bandit".

Use it when rare large rewards should move around. Not when they should stay: see `wheel`.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment
from driftbandits.environments.wheel import wheel_seen_as


def rotating_wheel(*, delta: float = 0.5, period: int = 2000) -> Environment:
    """The Wheel with quadrants that rotate; the policy does not see the time.

    Args:
        delta: Radius of the inner disc, where the safe arm is best.
        period: Steps of one full turn.
    """
    check.probability(delta=delta)
    check.integer(period=period)

    def turned(time: Array, context: Array) -> Array:
        angle = 2 * jnp.pi * ((time % period) / period)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        x, y = context
        return jnp.stack([cos * x + sin * y, -sin * x + cos * y])

    return wheel_seen_as(delta, turned)
