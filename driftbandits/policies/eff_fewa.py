"""EFF-FEWA: FEWA on windows of geometric length, whose memory and cost grow with log t.

The filter of fewa.py, with h in w_0 = 1, w_{j+1} = ceil(ratio * w_j) only. Each window's sum is
kept as a finished one and a pending one that takes over when it is full, so a sum may be as old
as w_j - w_{j-1} pulls.

Seznec, Menard, Lazaric & Valko (2020), "A single algorithm for both restless and rested rotting
bandits", and the efficient update of Seznec et al. (2019), appendix.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import count_pull, draw, greedy_law, set_arm
from driftbandits.policies.fewa import LONGEST, filter_bonus


class Levels(NamedTuple):
    """Sums over geometric windows of every arm."""

    finished: Array  # (num_arms, levels) float32, sum of a full window
    pending: Array  # (num_arms, levels) float32, sum of the window that is being filled
    counts: Array  # (num_arms, levels) int32, rewards in the pending window; 0: not started
    pulls: Array  # (num_arms,) int32


def eff_fewa(spec: BanditSpec, *, alpha: float = 0.06, ratio: float = 2.0) -> Policy:
    """FEWA with geometric windows: nearly as good, at a cost that grows with log t.

    Args:
        alpha: scales the confidence bonus.
        ratio: of one window's length to the one before, in (1, 2].
    """
    check.positive(alpha=alpha)
    if not check.is_number(ratio) or not 1 < ratio <= 2:
        check.fail("ratio", "a number in (1, 2]", ratio)
    lengths = geometric_lengths(spec.horizon or LONGEST, ratio)
    windows = jnp.array(lengths, jnp.int32)

    def init(key: Key) -> Levels:
        shape = (spec.num_arms, len(lengths))
        zeros = jnp.zeros(shape)
        counts = jnp.zeros(shape, jnp.int32)
        return Levels(zeros, zeros, counts, jnp.zeros(spec.num_arms, jnp.int32))

    def act(key: Key, levels: Levels, context: Array, available: Array) -> tuple[Decision, Levels]:
        bonus = filter_bonus(alpha, spec.noise, levels.pulls)
        active = filter_levels(levels, windows, available, bonus)
        law = greedy_law(-levels.pulls.astype(jnp.float32), active)
        arm = draw(key, law)
        return Decision(arm, law, arm), levels

    def learn(levels: Levels, arm: Array, reward: Array) -> Levels:
        row = push(levels.finished[arm], levels.pending[arm], levels.counts[arm], windows, reward)
        finished, pending, counts = (
            set_arm(old, arm, new) for old, new in zip(levels[:3], row, strict=True)
        )
        return Levels(finished, pending, counts, count_pull(levels.pulls, arm))

    return Policy(init, act, learn)


def geometric_lengths(longest: int, ratio: float) -> list[int]:
    """1, ceil(ratio), ... up to the longest window."""
    lengths = [1]
    while (following := math.ceil(ratio * lengths[-1])) <= longest:
        lengths.append(following)
    return lengths


def push(
    finished: Array, pending: Array, counts: Array, windows: Array, reward: Array
) -> tuple[Array, Array, Array]:
    """One arm's levels after one more reward.

    A full pending window becomes the finished one and goes on from the next shorter pending one,
    which holds the newest rewards. A level starts when the one before it is first full.
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


def filter_levels(levels: Levels, windows: Array, available: Array, bonus: Array) -> Array:
    """The arms that pass the filter at every window that all of them have filled."""

    def unfinished(state: tuple[Array, Array]) -> Array:
        active, level = state
        fewest = jnp.min(levels.pulls, where=active, initial=jnp.iinfo(jnp.int32).max)
        more = (level < windows.size) & (windows[level] <= fewest)
        return more & (jnp.sum(active) > 1)

    def proceed(state: tuple[Array, Array]) -> tuple[Array, Array]:
        active, level = state
        sums = levels.finished[:, level]
        best = jnp.max(sums, where=active, initial=-jnp.inf)
        close = sums >= best - bonus * jnp.sqrt(windows[level].astype(jnp.float32))
        return active & close, level + 1

    return jax.lax.while_loop(unfinished, proceed, (available, jnp.int32(0)))[0]
