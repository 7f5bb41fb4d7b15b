"""The Kullback-Leibler divergence of coins, and the upper confidence bound that it gives.

kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import xlogy

STEPS = 4  # of Newton's method; more bring float32 hardly any closer


def bernoulli_kl(p: Array, q: Array) -> Array:
    """kl(p, q), which is infinite where q excludes what p allows."""
    return xlogy(p, p) - xlogy(p, q) + xlogy(1 - p, 1 - p) - xlogy(1 - p, 1 - q)


def bernoulli_entropy(p: Array) -> Array:
    """-p ln(p) - (1 - p) ln(1 - p)."""
    return -xlogy(p, p) - xlogy(1 - p, 1 - p)


def kl_upper_bound(mean: Array, level: Array) -> Array:
    """The highest q in [mean, 1] with kl(mean, q) <= level, element by element.

    Newton's method on y = -ln(1 - q), in which the divergence is convex and, far out, a straight
    line. It starts above the root, so it comes down to it and never passes it. The start is the
    lower of two bounds: that of Pinsker, and kl >= (1 - mean) y - entropy(mean).
    """
    tiny = jnp.finfo(jnp.float32).tiny
    rest = jnp.maximum(1 - mean, tiny)
    entropy = bernoulli_entropy(mean)
    pinsker = -jnp.log(jnp.maximum(rest - jnp.sqrt(level / 2), tiny))
    start = jnp.minimum(pinsker, (level + entropy) / rest)

    def step(y: Array, _: None) -> tuple[Array, None]:
        q = -jnp.expm1(-y)
        excess = rest * y - entropy - xlogy(mean, q) - level
        slope = jnp.maximum(1 - mean / q, 1e-6)
        return y - jnp.maximum(excess, 0.0) / slope, None

    y, _ = jax.lax.scan(step, start, length=STEPS, unroll=True)
    bound = jnp.clip(-jnp.expm1(-y), mean, 1.0)
    return jnp.where(level > 0, bound, mean)
