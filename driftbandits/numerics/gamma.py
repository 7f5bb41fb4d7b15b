"""Gamma variates by rejection, with so few rejections that a block of runs is drawn together.

    d = a - 1/3;  y = x / sqrt(9 d), x ~ N(0, 1);   take d (1 + y)^3
    with probability exp(3 d (log(1 + y) - y + y^2 / 2 - y^3 / 3)), which is 0.95 or more on average

Marsaglia & Tsang (2000), "A simple method for generating gamma variables". Exact but for the
rounding of float32 and of its normal numbers, which end at 5.2.
"""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Key
from driftbandits.numerics import random_keys

LANES = 8  # numbers that a core processes at a time; a remainder costs as much as a full set
NEVER_REFUSED = 1e6
ENOUGH = 1000  # extra attempts, so that the loop ends if a shape is NaN


def sample_log_gamma(key: Key, shapes: Array) -> Array:
    """The logarithm of one Gamma variate for each of some shapes a, all at least 1.

    Rejected proposals are repeated one by one, which in a block of runs is less work than to repeat
    all of them.
    """

    def refused(carry: tuple[Array, Array]) -> Array:
        attempt, found = carry
        return jnp.isnan(found).any() & (attempt < ENOUGH + found.size)

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        attempt, found = carry
        chosen = jnp.arange(found.size) == jnp.argmax(jnp.isnan(found))
        shape = jnp.max(shapes, where=chosen, initial=1.0)
        new = propose(jax.random.fold_in(key, attempt), shape)
        return attempt + 1, jnp.where(chosen, new, found)

    count = shapes.size
    shapes = jnp.pad(shapes, (0, -count % LANES), constant_values=NEVER_REFUSED)
    first = propose(jax.random.fold_in(key, 0), shapes)
    return jax.lax.while_loop(refused, again, (jnp.int32(1), first))[1][:count]


def propose(key: Key, shape: Array) -> Array:
    """One proposal for each shape: the logarithm of the variate, or NaN where it is rejected."""
    d = shape - 1 / 3
    x, waiting = normal_and_exponential(key, shape.shape)
    y = x * jax.lax.rsqrt(9 * d)
    taken = waiting > -3 * d * log1p_beyond_cubic(y)
    return jnp.where(taken, jnp.log(d) + 3 * jnp.log1p(y), jnp.nan)


def normal_and_exponential(key: Key, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """A normal and an exponential number from the two words of one hash."""
    first, second = (odd_number(word) for word in random_keys.two_words(key, shape))
    return jnp.sqrt(2.0) * jax.lax.erf_inv(first * 2**-23 - 1), -jnp.log(second * 2**-24)


def odd_number(word: Array) -> Array:
    """Uniform over the odd numbers below 2^24, which float32 holds exactly."""
    return (word >> jnp.uint32(8) | jnp.uint32(1)).astype(jnp.float32)


def log1p_beyond_cubic(y: Array) -> Array:
    """log(1 + y) - y + y^2/2 - y^3/3, which is never positive; NaN or -inf where y <= -1."""
    tail = -(y**4) * (1 / 4 - y * (1 / 5 - y * (1 / 6 - y * (1 / 7 - y / 8))))
    return jnp.where(jnp.abs(y) < 0.1, tail, jnp.log1p(y) - y * (1 - y * (1 / 2 - y / 3)))
