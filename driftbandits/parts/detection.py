"""What the policies for a few sudden changes share: the horizon that they assume, and an index."""

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec

HORIZON = 10_000


def assumed_horizon(spec: BanditSpec) -> int:
    """The horizon, or 10000 where it is unknown."""
    return spec.horizon or HORIZON


def ucb_index(sums: Array, pulls: Array, time: Array, xi: float) -> Array:
    """mean + sqrt(xi ln(time) / pulls) for rewards in [0, 1]; infinite for an arm without pulls."""
    logarithm = jnp.log(jnp.maximum(time, 1).astype(jnp.float32))
    index = sums / pulls + jnp.sqrt(xi * logarithm / pulls)
    return jnp.where(pulls == 0, jnp.inf, index)
