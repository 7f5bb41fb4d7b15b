"""Bernoulli arms: entropy, and the upper confidence bound of the Kullback-Leibler divergence.

kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import xlogy

STEPS = 3
LEAST_MEAN = 1e-30
LEAST_LEVEL = 1e-10  # the level is 0 after the first reward


def bernoulli_entropy(p: Array) -> Array:
    """-p ln(p) - (1 - p) ln(1 - p)."""
    return -xlogy(p, p) - xlogy(1 - p, 1 - p)


def upper_score(mean: Array, level: Array) -> Array:
    """-ln(1 - q) of the highest q with kl(mean, q) <= level.

    It orders the arms as q does, and still differs where float32 rounds q to 1. Newton's method in
    u = ln((1 - p) / (1 - q)), in which kl is convex: three steps from a start above the root reach
    the precision of float32.
    """
    level = jnp.maximum(level, LEAST_LEVEL)
    p = jnp.maximum(mean, LEAST_MEAN)
    rest = 1 - p

    def newton(i: Array, u: Array) -> Array:
        gap = -rest * jnp.expm1(-u)  # q - p
        divergence = rest * u - p * jnp.log1p(gap / p)
        return u - (divergence - level) * (p + gap) / gap

    above = level / rest + jnp.sqrt(2 * level * p / rest)
    # As a loop: XLA would recompute unrolled steps wherever they are read.
    u = jax.lax.fori_loop(0, STEPS, newton, above)
    certain = jnp.finfo(jnp.float32).max  # q = 1
    return jnp.where(mean < 1, u - jnp.log1p(-p), certain)
