"""The contexts so far: the root mean square of each coordinate, robust to outliers."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.policies.tracker.outliers import (
    FirstSizes,
    add_size,
    gross,
    held_back,
    kept,
    no_sizes,
    one_more,
    settled,
    within_float32,
)


class SeenContexts(NamedTuple):
    number: Array  # (context_dim,) float32, how many, up to outliers.LONGEST
    squares: Array  # (context_dim,) float32, sum over the contexts
    sizes: FirstSizes  # of each coordinate


def no_contexts(context_dim: int) -> SeenContexts:
    zeros = jnp.zeros(context_dim)
    return SeenContexts(zeros, zeros, no_sizes((context_dim,)))


def add_context(seen: SeenContexts, context: Array) -> tuple[SeenContexts, Array]:
    """Adds a context, and returns it in units of the root mean square, itself included.

    A coordinate that was always 0 stays 0. If one of its first values was a gross outlier, its
    scale starts again from the third-largest of them.
    """
    context = within_float32(context)
    sizes = add_size(seen.sizes, jnp.abs(context))
    restarts = settled(sizes) & ~settled(seen.sizes) & gross(sizes)
    number = jnp.where(restarts, 1.0, seen.number)
    squares = jnp.where(restarts, sizes.largest[2] ** 2, seen.squares)
    scale = root_mean_square(squares, number)
    context = held_back(context, jnp.zeros(()), scale, settled(sizes))
    squares, number = kept(number) * squares + context**2, one_more(number)
    return SeenContexts(number, squares, sizes), context / root_mean_square(squares, number)


def root_mean_square(squares: Array, number: Array) -> Array:
    """The root mean square, or 1 if all values were 0."""
    mean_square = squares / jnp.maximum(number, 1)
    return jnp.sqrt(jnp.where(mean_square > 0, mean_square, 1.0))
