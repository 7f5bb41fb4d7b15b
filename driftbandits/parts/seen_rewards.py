"""The rewards so far: where they began, their mean and their variance.

Everything is counted from the first reward, so that float32 keeps the digits of rewards that are
large beside their differences.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

LEAST = 1e-12  # of the variance, for the case that all rewards are the same


class SeenRewards(NamedTuple):
    first: Array  # () float32
    number: Array  # () float32
    mean: Array  # () float32, above the first
    squares: Array  # () float32, of the distances from the mean


def none_seen() -> SeenRewards:
    zero = jnp.zeros(())
    return SeenRewards(zero, zero, zero, zero)


def see(seen: SeenRewards, reward: Array) -> tuple[SeenRewards, Array]:
    """With one more reward, and how far that is above the first one."""
    first = jnp.where(seen.number == 0, reward, seen.first)
    above, number = reward - first, seen.number + 1
    apart = above - seen.mean
    mean = seen.mean + apart / number
    return SeenRewards(first, number, mean, seen.squares + apart * (above - mean)), above


def spread(seen: SeenRewards) -> Array:
    """The variance of the rewards."""
    return seen.squares / jnp.maximum(seen.number, 1) + LEAST
