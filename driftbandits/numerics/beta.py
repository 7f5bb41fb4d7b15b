"""Beta posteriors of Bernoulli arms, as functions of the angle whose squared sine is the mean.

    theta = asin(sqrt(x)):   log density = A log sin(theta) + B log cos(theta) + constant,
    A = 2a - 1, B = 2b - 1;  highest at tan(theta)^2 = A / B, with curvature of at least A + B

In this angle every Beta density with a, b >= 1 has tails that fall at least as fast as a normal's
of variance 1 / (A + B), so a few points cover it, whether it is flat or as narrow as after ten
million pulls. Angles are relative to an arm that may be the best: the difference of two modes is
exact where the modes themselves would be rounded by a thousandth of such a width.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.numerics.best_arm import best_arm_probabilities
from driftbandits.numerics.cells import Scores

REACH = 4.7
ALMOST_MINUS_ONE = -1 + 1e-7  # rounding must not take a sine or a cosine below zero
UPPER_HALF = np.uint32(0xFFFFF000)  # of the bits of a float32: products of two such are exact


def best_bernoulli_probabilities(a: Array, b: Array, available: Array) -> Array:
    """P(arm i has the highest mean) under independent Beta(a_i, b_i), a and b at least 1."""
    sines, cosines = 2 * a - 1, 2 * b - 1
    both, tangent = sines + cosines, jnp.sqrt(sines / cosines)
    scales = jax.lax.rsqrt(both)
    mode, rest = jnp.arctan(jnp.stack([tangent, 1 / tangent]))
    lower, upper = -jnp.minimum(REACH * scales, mode), jnp.minimum(REACH * scales, rest)
    origin = jnp.argmax(jnp.where(available, mode + lower, -jnp.inf))

    def log_density(step: Array) -> Array:
        """Relative to the mode, where the first-order terms of the two logarithms cancel."""
        half = sine(step / 2)
        bend, slope = -2 * half * half, 2 * half * jnp.sqrt(1 - half * half)
        rise = jnp.maximum(bend + slope / tangent[:, None], ALMOST_MINUS_ONE)
        fall = jnp.maximum(bend - slope * tangent[:, None], ALMOST_MINUS_ONE)
        logs = sines[:, None] * log_beyond_first(rise) + cosines[:, None] * log_beyond_first(fall)
        return both[:, None] * bend + logs

    def normal_score(step: Array) -> Array:
        return jnp.sign(step) * jnp.sqrt(-2 * jnp.minimum(log_density(step), 0.0))

    centres = angles_from(sines[origin], cosines[origin], sines, cosines)
    scores = Scores(centres, 0.75 * scales, lower, upper, available, log_density, normal_score)
    return best_arm_probabilities(scores)


def sine(x: Array) -> Array:
    """sin(x) for |x| up to pi / 4; XLA's takes several times as long."""
    square = x * x
    return x * (1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72))))


def log_beyond_first(x: Array) -> Array:
    """log(1 + x) - x, by the series of atanh where the difference would lose digits."""
    s = x / (2 + x)
    square = s * s
    tail = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square / 11)))
    return jnp.where(jnp.abs(x) < 0.5, s * (2 * square * tail - x), jnp.log(1 + x) - x)


def angles_from(sine0: Array, cosine0: Array, sines: Array, cosines: Array) -> Array:
    """atan(sqrt(sines / cosines)) - atan(sqrt(sine0 / cosine0)), without cancellation."""
    sums = jnp.sqrt(sines * cosine0) + jnp.sqrt(cosines * sine0)
    along = jnp.sqrt(sines * sine0) + jnp.sqrt(cosines * cosine0)
    return jnp.arctan(difference_of_products(sines, cosine0, cosines, sine0) / (sums * along))


def difference_of_products(a: Array, b: Array, c: Array, d: Array) -> Array:
    """a b - c d, where the two products may agree in most of their digits."""
    (a, a_), (b, b_), (c, c_), (d, d_) = (split(v) for v in (a, b, c, d))
    return ((a * b - c * d) + (a * b_ - c * d_)) + ((a_ * b - c_ * d) + (a_ * b_ - c_ * d_))


def split(x: Array) -> tuple[Array, Array]:
    """A float32 as the sum of two with half of its digits each (Dekker 1971)."""
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32) & UPPER_HALF
    upper = jax.lax.bitcast_convert_type(bits, jnp.float32)
    return upper, x - upper
