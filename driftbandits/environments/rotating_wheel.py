"""The Wheel whose quadrants rotate; the learner sees neither the rotation nor the time.

    (x', y') = (cos wt x + sin wt y, -sin wt x + cos wt y),   w = 2 pi / period

Rotman & Wolf (2023), section 4, "Wheel Bandit".
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment
from driftbandits.environments.wheel import wheel_seen_as


def rotating_wheel(*, delta: float = 0.5, period: int = 2000) -> Environment:
    """The Wheel with quadrants that rotate; the learner does not see the time.

    Args:
        delta: radius of the inner disc, where the safe arm is best.
        period: steps of one full turn.
    """
    check.probability(delta=delta)
    check.integer(period=period)

    def turned(time: Array, context: Array) -> Array:
        angle = 2 * jnp.pi * ((time % period) / period)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        x, y = context
        return jnp.stack([cos * x + sin * y, -sin * x + cos * y])

    return wheel_seen_as(delta, turned)
