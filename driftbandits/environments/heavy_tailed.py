"""Heavy tails: adds noise with heavy tails to the rewards of any environment.

    reward_k + deviation * sqrt((nu - 2) / nu) * T_nu;   the means stay

T_nu follows Student's t distribution with nu degrees of freedom (3 by default). Its standard
deviation is `deviation`, but its moments of order nu and above are infinite. It is made from two
uniform numbers by the rule of Bailey (1994), "Polar generation of random variates with the
t-distribution". `spec.noise` becomes sqrt(noise^2 + deviation^2), though no sub-Gaussian constant
bounds such tails, and `spec.reward_range` grows by two deviations on both sides, as with `noisy`.

Examples: returns, sales and latencies, where most are near the mean and a few outweigh hundreds.

Paper: Bubeck, Cesa-Bianchi & Lugosi (2013), "Bandits with heavy tail".

Use it when outliers should occur. Not when noise should be Gaussian: see `noisy`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.numerics.added_noise import with_noise


def heavy_tailed(environment: Environment, noise: float | list[float]) -> Environment:
    """Adds Student's t noise of this standard deviation; a pair [deviation, nu] sets nu too.

    Args:
        environment: The environment to change.
        noise: The standard deviation, or [deviation, nu] with nu above 2.
    """
    deviation, degrees = pair_from(noise)
    scale = deviation * ((degrees - 2) / degrees) ** 0.5

    def scaled_student(key: Key, shape: tuple[int, ...]) -> Array:
        return scale * student(key, degrees, shape)

    return with_noise(environment, deviation, scaled_student)


def student(key: Key, degrees: float, shape: tuple[int, ...]) -> Array:
    """Student's t, without the rejections of jax.random.t, which are slow in a simulation."""
    radius, angle = jax.random.uniform(key, (2, *shape))
    square = degrees * jnp.expm1(-2 / degrees * jnp.log1p(-radius))
    return jnp.sqrt(square) * jnp.cos(2 * jnp.pi * angle)


def pair_from(noise: Any) -> tuple[float, float]:
    pair = tuple(noise) if isinstance(noise, list | tuple) else (noise, 3.0)
    rule = "a number of at least 0, or a pair [deviation, nu] of such a number and one above 2"
    if (
        len(pair) != 2
        or not all(check.is_number(value) for value in pair)
        or pair[0] < 0
        or pair[1] <= 2
    ):
        check.fail("heavy_tailed", rule, noise)
    return float(pair[0]), float(pair[1])
