"""Noise: adds Gaussian noise to the rewards of any environment.

    reward_k + deviation * N(0, 1);   the means stay

`spec.noise` becomes sqrt(noise^2 + deviation^2), and `spec.reward_range` grows by two deviations on
both sides.

Examples: an inexact meter, or a reward that is only estimated.

Use it when differences should be harder to see. Not when outliers should occur: see `heavy_tailed`.
"""

import jax
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.numerics.added_noise import with_noise


def noisy(environment: Environment, deviation: float) -> Environment:
    """Adds Gaussian noise of this standard deviation to the sampled rewards.

    Args:
        environment: The environment to change.
        deviation: The standard deviation.
    """
    check.not_negative(noisy=deviation)

    def gaussian(key: Key, shape: tuple[int, ...]) -> Array:
        return deviation * jax.random.normal(key, shape)

    return with_noise(environment, deviation, gaussian)
