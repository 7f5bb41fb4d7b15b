"""The last rewards of every arm, in ring buffers.

`rewards[arm, (pulls[arm] - h) % size]` is the h-th last reward of an arm.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.numerics.arms import count_pull

LONGEST = 100_000  # limit of windows that may be as long as the horizon


class Windows(NamedTuple):
    rewards: Array  # (num_arms, size) float32
    pulls: Array  # (num_arms,) int32


def empty_windows(num_arms: int, size: int) -> Windows:
    return Windows(jnp.zeros((num_arms, size)), jnp.zeros(num_arms, jnp.int32))


def remember(windows: Windows, arm: Array, reward: Array) -> Windows:
    """The windows after one more reward of an arm."""
    slot = windows.pulls[arm] % windows.rewards.shape[1]
    return Windows(windows.rewards.at[arm, slot].set(reward), count_pull(windows.pulls, arm))


def last_rewards(windows: Windows, first: Array, count: int) -> Array:
    """The first-th, ..., (first + count - 1)-th last reward of every arm: (num_arms, count)."""
    back = first + jnp.arange(count)
    slots = (windows.pulls[:, None] - back) % windows.rewards.shape[1]
    return jnp.take_along_axis(windows.rewards, slots, axis=1)


def confidence(alpha: float, noise: float, pulls: Array) -> Array:
    """sqrt(2 alpha noise^2 ln t), t the sum of the pulls.

    Divided by sqrt(h) it is the bonus of a mean of h rewards.
    """
    time = jnp.maximum(jnp.sum(pulls), 1).astype(jnp.float32)
    return jnp.sqrt(2 * alpha * noise**2 * jnp.log(time))
