"""The rewards so far: the first one, their mean and their variance, robust to outliers.

Everything is relative to the first reward, so that float32 has enough digits for rewards that are
large compared to their differences. Outliers are detected by the distances between consecutive
rewards: one outlier makes two large distances, so the third-largest is the reference. If an outlier
was among the first rewards, what has been learned is in the wrong units, and everything starts
again.
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

LEAST = 1e-12  # least variance, in case all rewards are the same


class SeenRewards(NamedTuple):
    first: Array  # () float32
    number: Array  # () float32, how many, up to outliers.LONGEST
    mean: Array  # () float32, relative to the first
    squares: Array  # () float32, of the distances from the mean
    last: Array  # () float32
    distances: FirstSizes  # between consecutive rewards
    alert: Array  # () float32, for how many more rewards another outlier is believed


class Taken(NamedTuple):
    """A reward as it is learned."""

    relative: Array  # () float32, relative to the first one, and clipped
    usual: Array  # () bool, whether it was not clipped
    believed: Array  # () bool, whether the filters learn from it
    restarts: Array  # () bool, whether everything before was in the wrong units


def no_rewards() -> SeenRewards:
    zero = jnp.zeros(())
    return SeenRewards(zero, zero, zero, zero, zero, no_sizes(()), zero)


def add_reward(seen: SeenRewards, reward: Array) -> tuple[SeenRewards, Taken]:
    """Adds a reward, and returns it as it is learned."""
    reward = within_float32(reward)
    distance = jnp.where(seen.number == 0, 0.0, jnp.abs(reward - seen.last))
    distances = add_size(seen.distances, distance)
    settles = settled(distances) & ~settled(seen.distances)
    restarts = settles & gross(seen.distances)  # without the newest, which can still be clipped
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
    # A good outlier is believed at once: its arm is pulled again, which shows the truth. A bad one
    # may be an accident, and would keep the arm from being pulled again.
    believed = usual | (apart > 0) | (seen.alert > 0)
    return after, Taken(relative, usual, believed, restarts)


def reward_variance(seen: SeenRewards) -> Array:
    return seen.squares / jnp.maximum(seen.number, 1) + LEAST
