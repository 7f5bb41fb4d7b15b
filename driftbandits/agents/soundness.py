"""Whether a policy's memory, and what it decides with it, are numbers that can be used."""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import PyTree


def is_finite(tree: PyTree) -> Array:
    """Whether all of its numbers are; random keys have none."""
    found = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree) if is_real(leaf)]
    return jnp.stack(found).all() if found else jnp.array(True)


def are_probabilities(rows: Array) -> Array:
    """Of each row, whether its sum is 1; where a score is not a number, it is that or 0."""
    return jnp.abs(rows.sum(axis=-1) - 1) < 0.01


def is_real(leaf: Array) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.floating))


def largest(tree: PyTree) -> Array:
    """The size of its largest number."""
    found = [jnp.abs(leaf).max() for leaf in jax.tree.leaves(tree) if is_real(leaf) and leaf.size]
    return jnp.stack(found).max() if found else jnp.zeros(())
