"""Sums over the last rewards of every arm, for windows of geometric length.

    w_0 = 1, w_{j+1} = ceil(ratio * w_j)

A level has a finished window and a pending one that replaces it when full, so its sum may be
w_j - w_{j-1} pulls of the arm old. Memory and time per reward grow with log t.

Seznec et al. (2019), "Rotting bandits are no harder than stochastic ones", appendix.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.numerics.arms import count_pull, set_arm


class Levels(NamedTuple):
    """Sums over geometric windows of every arm."""

    finished: Array  # (num_arms, levels) float32, sum of a full window
    pending: Array  # (num_arms, levels) float32, sum of the window that is being filled
    counts: Array  # (num_arms, levels) int32, rewards in the pending window; 0: not started
    pulls: Array  # (num_arms,) int32; level j has a full window where this is w_j or more


def geometric_lengths(longest: int, ratio: float) -> list[int]:
    """1, ceil(ratio), ... up to the longest window."""
    if not check.is_number(ratio) or not 1 < ratio <= 2:
        check.fail("ratio", "a number in (1, 2]", ratio)
    lengths = [1]
    while (following := math.ceil(ratio * lengths[-1])) <= longest:
        lengths.append(following)
    return lengths


def empty_levels(num_arms: int, num_levels: int) -> Levels:
    shape = (num_arms, num_levels)
    zeros = jnp.zeros(shape)
    return Levels(zeros, zeros, jnp.zeros(shape, jnp.int32), jnp.zeros(num_arms, jnp.int32))


def add_reward(levels: Levels, windows: Array, arm: Array, reward: Array) -> Levels:
    """The levels after one more reward of an arm; `windows` holds the lengths."""
    row = add_to_arm(levels.finished[arm], levels.pending[arm], levels.counts[arm], windows, reward)
    finished, pending, counts = (
        set_arm(old, arm, new) for old, new in zip(levels[:3], row, strict=True)
    )
    return Levels(finished, pending, counts, count_pull(levels.pulls, arm))


def add_to_arm(
    finished: Array, pending: Array, counts: Array, windows: Array, reward: Array
) -> tuple[Array, Array, Array]:
    """One arm's levels after one more reward.

    A full pending window becomes the finished one and continues from the next shorter pending one,
    which holds the newest rewards. A level starts when the one before it is full for the first
    time.
    """
    first = jnp.arange(windows.size) == 0
    started = first | (counts > 0)
    pending = jnp.where(first, reward, jnp.where(started, pending + reward, 0.0))
    counts = jnp.where(first, 1, jnp.where(started, counts + 1, 0))
    full = counts == windows
    inherits = ~first & (full | (~started & shift(full)))
    return (
        jnp.where(full, pending, finished),
        jnp.where(inherits, shift(pending), pending),
        jnp.where(inherits, shift(counts), counts),
    )


def shift(levels: Array) -> Array:
    """The value of the level before."""
    return jnp.roll(levels, 1)
