"""SWA: the sliding-window average for rotting bandits.

    M = ceil(alpha * (16 sigma^2 T^2 ln(sqrt(2) T) / K^2)^(1/3))
    pull every arm M times in turn; from then on the arm whose last M rewards have the highest mean

sigma is `spec.noise`. With `doubling` it is the paper's wSWA for an unknown horizon, which restarts
in epochs of 1, 2, 4, ... pulls.

Paper: Levine, Crammer & Mannor (2017), "Rotting bandits".

Use it when an arm only loses by being pulled and the horizon is known. Not when arms recover, or
take turns being the best: the window is long, and an arm that was left is never tried again.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities, set_arm
from driftbandits.numerics.windows import Windows, empty_windows, remember

LONGEST_EPOCH = 2**24  # the window stops growing here if the horizon is unknown


class SwaState(NamedTuple):
    windows: Windows
    sums: Array  # (num_arms,) float32, of the last M rewards
    epoch: Array  # () int32
    left: Array  # () int32, pulls until the next epoch


def swa(spec: BanditSpec, *, alpha: float = 0.2, doubling: bool = False) -> Policy:
    """Sliding-window average, made for rewards that only fall.

    Args:
        alpha: Scales the window.
        doubling: Whether to restart in epochs of doubling length, for an unknown horizon.
    """
    check.positive(alpha=alpha)
    check.flag(doubling=doubling)
    if spec.horizon is None and not doubling:
        check.fail("horizon", "known to swa (use swa(doubling=true) where it is not)", None)
    epochs = epoch_lengths(spec.horizon, doubling)
    windows = [window_length(length, spec, alpha) for length in epochs]
    lengths, sizes = jnp.array(epochs, jnp.int32), jnp.array(windows, jnp.int32)

    def init(key: Key) -> SwaState:
        empty = empty_windows(spec.num_arms, max(windows))
        return SwaState(empty, jnp.zeros(spec.num_arms), jnp.int32(0), lengths[0])

    def act(key: Key, state: SwaState, observation: Observation) -> tuple[Decision, SwaState]:
        pulls = state.windows.pulls
        warming_up = pulls < sizes[state.epoch]
        turn = -pulls.astype(jnp.float32)
        scores = jnp.where((warming_up & observation.available).any(), turn, state.sums)
        probabilities = greedy_probabilities(scores, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: SwaState, arm: Array, reward: Array) -> SwaState:
        windows = remember(state.windows, arm, reward)
        total = sum_of_last(windows, arm, sizes[state.epoch])
        state = state._replace(windows=windows, sums=set_arm(state.sums, arm, total))
        return next_epoch(state._replace(left=state.left - 1), lengths)

    return Policy(init, act, learn)


def epoch_lengths(horizon: int | None, doubling: bool) -> list[int]:
    """One epoch of the whole horizon, or doubling ones up to it; the last never ends."""
    if not doubling:
        assert horizon is not None
        return [horizon]
    longest = min(horizon or LONGEST_EPOCH, LONGEST_EPOCH)
    return [2**m for m in range(longest.bit_length())]


def window_length(horizon: int, spec: BanditSpec, alpha: float) -> int:
    """M of the formula above, but at most the horizon."""
    inside = 16 * (spec.noise * horizon / spec.num_arms) ** 2 * math.log(math.sqrt(2) * horizon)
    return math.ceil(min(alpha * inside ** (1 / 3), horizon))


def sum_of_last(windows: Windows, arm: Array, count: Array) -> Array:
    """Sum of an arm's last `count` rewards, recomputed: a running sum would drift."""
    size = windows.rewards.shape[1]
    age = (windows.pulls[arm] - 1 - jnp.arange(size)) % size
    return jnp.sum(jnp.where(age < count, windows.rewards[arm], 0.0))


def next_epoch(state: SwaState, lengths: Array) -> SwaState:
    """Forgets everything when an epoch ends, except when it was the last one."""
    over = (state.left == 0) & (state.epoch + 1 < lengths.size)
    epoch = state.epoch + over
    return SwaState(
        state.windows._replace(pulls=jnp.where(over, 0, state.windows.pulls)),
        jnp.where(over, 0.0, state.sums),
        epoch,
        jnp.where(over, lengths[epoch], state.left),
    )
