"""Whether a policy's memory, and what it decides with it, are numbers that can be used."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import PyTree

NEARLY = 0.01  # what a sum of probabilities may be off


def is_finite(tree: PyTree) -> Array:
    """Whether all numbers are finite; random keys are skipped."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if is_real(leaf) and leaf.size]
    found = [jnp.isfinite(jnp.abs(leaf).max()) for leaf in leaves]  # quicker than one by one
    return jnp.stack(found).all() if found else jnp.array(True)


def are_probabilities(rows: Array) -> Array:
    """Whether each row sums to 1; with a score that is not a number, the sum is not 1."""
    return jnp.abs(rows.sum(axis=-1) - 1) < NEARLY


def sum_to_one(probabilities: np.ndarray) -> bool:
    """`are_probabilities` on the host."""
    return bool(abs(float(probabilities.sum()) - 1) < NEARLY)


def is_real(leaf: Array) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.floating))


def largest(tree: PyTree) -> Array:
    """The absolute value of its largest number."""
    found = [jnp.abs(leaf).max() for leaf in jax.tree.leaves(tree) if is_real(leaf) and leaf.size]
    return jnp.stack(found).max() if found else jnp.zeros(())
