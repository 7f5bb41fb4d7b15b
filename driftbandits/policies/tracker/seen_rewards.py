"""The rewards so far: the first one, their mean and their variance, which no outlier can spoil.

Everything is relative to the first reward, so that float32 keeps the digits of rewards that are
large beside their differences. Outliers are told by the distances between consecutive rewards: one
outlier makes two of them, so the third-largest tells. If it was among the first rewards, what has
been learned is in the wrong units, and everything starts again.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.policies.tracker.outliers import (
    ALERT,
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

LEAST = 1e-12  # of the variance, for the case that all rewards are the same


class SeenRewards(NamedTuple):
    first: Array  # () float32
    number: Array  # () float32, how many, up to outliers.LONGEST
    mean: Array  # () float32, relative to the first
    squares: Array  # () float32, of the distances from the mean
    last: Array  # () float32
    distances: FirstSizes  # between consecutive rewards
    alert: Array  # () float32, for how many more rewards an outlier is no accident


class Taken(NamedTuple):
    """What a reward counts as."""

    relative: Array  # () float32, to the first one, and not too far out
    usual: Array  # () bool, whether it counts as what it is
    believed: Array  # () bool, whether the filters learn from it
    restarts: Array  # () bool, whether all before it was in the wrong units


def no_rewards() -> SeenRewards:
    zero = jnp.zeros(())
    return SeenRewards(zero, zero, zero, zero, zero, no_sizes(()), zero)


def add_reward(seen: SeenRewards, reward: Array) -> tuple[SeenRewards, Taken]:
    """With one more reward; and what that reward counts as."""
    reward = within_float32(reward)
    distance = jnp.where(seen.number == 0, 0.0, jnp.abs(reward - seen.last))
    distances = add_size(seen.distances, distance)
    settles = settled(distances) & ~settled(seen.distances)
    restarts = settles & gross(seen.distances)  # without the newest, which can still be held back
    seen = seen._replace(distances=distances)
    seen = jax.tree.map(lambda new, old: jnp.where(restarts, new, old), no_rewards(), seen)
    first = jnp.where(seen.number == 0, reward, seen.first)
    deviation = jnp.sqrt(reward_variance(seen))
    relative = held_back(reward - first, seen.mean, deviation, settled(seen.distances))
    number, apart = one_more(seen.number), relative - seen.mean
    mean = seen.mean + apart / number
    squares = kept(seen.number) * seen.squares + apart * (relative - mean)
    usual = relative == reward - first
    alert = jnp.where(usual, jnp.maximum(seen.alert - 1, 0.0), ALERT)
    after = SeenRewards(first, number, mean, squares, reward, seen.distances, alert)
    # A good one is believed at once: its arm is pulled again, and tells. A bad one may be an
    # accident, and after it nobody would ask the arm.
    believed = usual | (apart > 0) | (seen.alert > 0)
    return after, Taken(relative, usual, believed, restarts)


def reward_variance(seen: SeenRewards) -> Array:
    return seen.squares / jnp.maximum(seen.number, 1) + LEAST
