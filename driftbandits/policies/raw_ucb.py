"""RAW-UCB: the lowest of the upper confidence bounds over all recent windows.

    index_k = min over h = 1 ... pulls_k of  mean of the last h rewards + c(h)
    c(h) = sqrt(2 sigma^2 alpha ln(t) / h);   infinite before the first pull

t is the number of rewards so far, and sigma is `spec.noise`. A choice takes time in proportion to
num_arms times the pulls of the most pulled arm (or `longest`, if less), and a reward in proportion
to `longest`.

Paper: Seznec, Menard, Lazaric & Valko (2020), "A single algorithm for both restless and rested
rotting bandits".

Differences from the paper: the constants inside the logarithm are left out, as in the authors' own
experiments, and no window is longer than `longest`, which bounds memory and time.

Use it when rewards only fall, with pulls or with time; one setting serves both. Not when means rise
again (an arm that looked bad is hardly tried), when rewards are noisier than `spec.noise`, or over
a long horizon, where `eff_raw_ucb` takes a fraction of the time.

It ignores the context.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities
from driftbandits.numerics.windows import LONGEST, confidence

STRIDE = 128  # slots processed together


class RawUcbState(NamedTuple):
    """Ring buffers: an arm's next reward goes to the slot of number pulls % size."""

    sums: Array  # (num_arms, size) float32, from the reward of this slot to the newest
    pulls: Array  # (num_arms,) int32


def raw_ucb(spec: BanditSpec, *, alpha: float = 1.4, longest: int | None = None) -> Policy:
    """Upper confidence bounds over all windows, made for rewards that only fall.

    Args:
        alpha: Scales the confidence bonus (theory asks for 4, practice for 1.4).
        longest: Longest window; by default the horizon, but at most 100,000. Memory is num_arms
            times this.
    """
    check.positive(alpha=alpha)
    size = min(spec.horizon or LONGEST, LONGEST) if longest is None else longest
    check.integer(longest=size)

    def init(key: Key) -> RawUcbState:
        return RawUcbState(jnp.zeros((spec.num_arms, size)), jnp.zeros(spec.num_arms, jnp.int32))

    def act(key: Key, state: RawUcbState, observation: Observation) -> tuple[Decision, RawUcbState]:
        index = lowest_bounds(state, confidence(alpha, spec.noise, state.pulls))
        probabilities = greedy_probabilities(index, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: RawUcbState, arm: Array, reward: Array) -> RawUcbState:
        starts = jnp.arange(size) == state.pulls[arm] % size
        row = jnp.where(starts, 0.0, state.sums[arm]) + reward
        return RawUcbState(state.sums.at[arm].set(row), count_pull(state.pulls, arm))

    return Policy(init, act, learn)


def lowest_bounds(state: RawUcbState, bonus: Array) -> Array:
    """The index of every arm. Slots are processed by strides, as far as any are in use."""
    num_arms, size = state.sums.shape
    stride = min(STRIDE, size)
    used = jnp.minimum(jnp.max(state.pulls), size)

    def unfinished(carry: tuple[Array, Array]) -> Array:
        return carry[0] < used

    def proceed(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        start, lowest = carry
        first = jnp.minimum(start, size - stride)  # strides may overlap
        sums = jax.lax.dynamic_slice_in_dim(state.sums, first, stride, axis=1)
        bounds = upper_bounds(sums, first + jnp.arange(stride), state.pulls, size, bonus)
        return start + stride, jnp.minimum(lowest, jnp.min(bounds, axis=1))

    nothing = jnp.full(num_arms, jnp.inf)
    return jax.lax.while_loop(unfinished, proceed, (jnp.int32(0), nothing))[1]


def upper_bounds(sums: Array, slots: Array, pulls: Array, size: int, bonus: Array) -> Array:
    """Mean and bonus of the windows that start at these slots; infinite where there is none."""
    ahead = (pulls % size)[:, None] - slots
    length = jnp.where(ahead > 0, ahead, ahead + size)
    root = 1 / jnp.sqrt(length.astype(jnp.float32))
    return jnp.where(length <= pulls[:, None], root * (root * sums + bonus), jnp.inf)
