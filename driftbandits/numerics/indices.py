"""The index that policies for rewards in [0, 1] share."""

import jax.numpy as jnp
from jax import Array


def ucb_index(sums: Array, pulls: Array, time: Array, xi: float) -> Array:
    """mean + sqrt(xi ln(time) / pulls) for rewards in [0, 1]; infinite for an arm without pulls."""
    logarithm = jnp.log(jnp.maximum(time, 1).astype(jnp.float32))
    index = sums / pulls + jnp.sqrt(xi * logarithm / pulls)
    return jnp.where(pulls == 0, jnp.inf, index)
