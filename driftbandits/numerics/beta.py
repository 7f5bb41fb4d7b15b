"""Beta posteriors of Bernoulli arms, seen through the angle whose squared sine is the mean.

    theta = asin(sqrt(x)):   log density = A log sin(theta) + B log cos(theta) + constant,
    A = 2a - 1, B = 2b - 1;  highest at tan(theta)^2 = A / B, with curvature of at least A + B

In this angle every Beta density with a, b >= 1 has tails that fall at least as fast as a normal's
of variance 1 / (A + B), so a few nodes cover it, be it flat or as narrow as after a million pulls.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.numerics.best_arm import best_arm_probabilities

REACH = np.linspace(-6, 6, 25).astype(np.float32)
ALMOST_MINUS_ONE = -1 + 1e-7  # rounding must not take a sine or a cosine below zero


def best_bernoulli_probabilities(a: Array, b: Array, available: Array) -> Array:
    """P(arm i has the highest mean) under independent Beta(a_i, b_i), a and b at least 1."""
    sines, cosines = 2 * a - 1, 2 * b - 1
    root = jnp.sqrt(sines * cosines)
    mode = jnp.arctan2(jnp.sqrt(sines), jnp.sqrt(cosines))[:, None]
    nodes = mode + REACH / jnp.sqrt(sines + cosines)[:, None]

    def log_density(theta: Array) -> Array:
        """Relative to the mode, where the two first-order terms are the same root * sin(step)."""
        step = theta - mode[..., None]
        bend, slope = -2 * jnp.sin(step / 2) ** 2, jnp.sin(step)
        sines_, cosines_, root_ = (v[:, None, None] for v in (sines, cosines, root))
        rise = jnp.maximum(bend + root_ / sines_ * slope, ALMOST_MINUS_ONE)
        fall = jnp.maximum(bend - root_ / cosines_ * slope, ALMOST_MINUS_ONE)
        return sines_ * jnp.log1p(rise) + cosines_ * jnp.log1p(fall)

    return best_arm_probabilities(log_density, jnp.clip(nodes, 0.0, jnp.pi / 2), available)
