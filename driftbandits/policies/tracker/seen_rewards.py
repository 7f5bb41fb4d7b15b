"""The rewards so far: the first one, their mean and their variance.

Everything is relative to the first reward, so that float32 keeps the digits of rewards that are
large beside their differences.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

LEAST = 1e-12  # of the variance, for the case that all rewards are the same


class SeenRewards(NamedTuple):
    first: Array  # () float32
    number: Array  # () float32, how many
    mean: Array  # () float32, relative to the first
    squares: Array  # () float32, of the distances from the mean


def no_rewards() -> SeenRewards:
    zero = jnp.zeros(())
    return SeenRewards(zero, zero, zero, zero)


def add_reward(seen: SeenRewards, reward: Array) -> tuple[SeenRewards, Array]:
    """With one more reward; and that reward relative to the first one."""
    first = jnp.where(seen.number == 0, reward, seen.first)
    relative, number = reward - first, seen.number + 1
    apart = relative - seen.mean
    mean = seen.mean + apart / number
    return SeenRewards(first, number, mean, seen.squares + apart * (relative - mean)), relative


def reward_variance(seen: SeenRewards) -> Array:
    return seen.squares / jnp.maximum(seen.number, 1) + LEAST
