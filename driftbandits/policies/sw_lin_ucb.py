"""SW-LinUCB: linear UCB on the last `window` rewards.

    z = (context, 1);  index_k = z' theta_k + alpha * width * sqrt(z' V_k^-1 z)
    V_k = precision * I + sum z z',  theta_k = V_k^-1 sum (r - low) z
                                     over those of the last `window` rewards that arm k paid

Cheung, Simchi-Levi & Zhu (2019), "Learning to optimize under non-stationarity", with the features
of each arm in a block of their own, so that V falls apart into one matrix per arm. The window is
over the rewards of all arms: one that is not pulled is in time as unknown as at the start. (low,
low + width) is `spec.reward_range`, as in lin_ucb. With `delta` width is the radius of the paper in
its place, for each arm on its own, where d = dim(z) and noise is `spec.noise`:

    width * sqrt(precision) + noise * sqrt(d ln((1 + window / precision) / delta))

The default window is the paper's (d T / B)^(2/3), where the variation B of the coefficients over the
horizon T is not known and taken to be 1. Without a context z is the constant 1.

Differences from the paper: the width is constant unless `delta` is given, for that of the paper
explores too much. A new reward is added to the sums and the oldest one subtracted; every 500 rewards
they are summed anew, so that what float32 rounds away does not pile up.

Use it when rewards depend on a context about linearly and that dependence jumps or drifts: what is
older than the window is gone for good. Set `window` to the number of pulls over which it holds
still. Not when nothing drifts (lin_ucb), nor where memory is short: it keeps the whole window. It
inverts a matrix per arm at every step, which is slow from some 30 features on.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import draw, greedy_law
from driftbandits.parts.ellipsoid import check_width, reward_width
from driftbandits.parts.occasionally import occasionally
from driftbandits.parts.regression import Memory, empty_memory, store
from driftbandits.parts.ridge import Sums, add, memory_length, no_sums, solve

RESUM_EVERY = 500  # rewards


class SwLinUcbState(NamedTuple):
    memory: Memory  # of the last `window` rewards, its inputs are the features
    sums: Sums  # over the memory


class SwLinUcbTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def sw_lin_ucb(
    spec: BanditSpec,
    *,
    window: int | None = None,
    alpha: float = 1.0,
    precision: float = 1.0,
    delta: float | None = None,
) -> Policy:
    """Linear upper confidence bounds on a sliding window.

    Args:
        window: how many of the last rewards count; none is (d T)^(2/3), where d is the dimension of
            the context plus 1 and T the horizon, or 10000 where it is unknown.
        alpha: scales the bonus.
        precision: of the prior on each coefficient (the ridge).
        delta: chance that an arm's bound fails; none is a bonus whose width does not depend on it.
    """
    check_width(alpha=alpha, delta=delta, precision=precision)
    size = math.ceil(memory_length(spec)) if window is None else window
    check.whole(window=size)
    width = alpha * window_radius(spec, delta, precision, size)
    low, dim = spec.reward_range[0], spec.context_dim + 1

    def init(key: Key) -> SwLinUcbState:
        return SwLinUcbState(empty_memory(size, dim), no_sums(spec.num_arms, dim))

    def act(
        key: Key, state: SwLinUcbState, context: Array, available: Array
    ) -> tuple[Decision, SwLinUcbState]:
        features = jnp.append(context, 1.0)
        solution = solve(state.sums.information, features, precision)
        mean = jnp.sum(solution * state.sums.moment, axis=1)
        law = greedy_law(mean + width * jnp.sqrt(solution @ features), available)
        arm = draw(key, law)
        return Decision(arm, law, SwLinUcbTicket(features, arm)), state

    def learn(state: SwLinUcbState, ticket: SwLinUcbTicket, reward: Array) -> SwLinUcbState:
        sums = add(without_oldest(state), ticket.arm, ticket.features, reward - low)
        memory = store(state.memory, ticket.features, ticket.arm, reward - low)
        due = memory.seen % RESUM_EVERY == 0
        return occasionally(due, summed_anew, SwLinUcbState(memory, sums))

    return Policy(init, act, learn)


def window_radius(spec: BanditSpec, delta: float | None, precision: float, window: int) -> float:
    """The width of the formula above; without delta that of the reward range."""
    norm = reward_width(spec)
    if delta is None:
        return norm
    logarithm = math.log((1 + window / precision) / delta)
    return norm * math.sqrt(precision) + spec.noise * math.sqrt((spec.context_dim + 1) * logarithm)


def without_oldest(state: SwLinUcbState) -> Sums:
    """The sums without the reward whose place the next one takes, if there is one."""
    memory, size = state.memory, state.memory.arms.size
    slot = memory.seen % size
    weight = -(memory.seen >= size).astype(jnp.float32)
    return add(state.sums, memory.arms[slot], memory.inputs[slot], memory.rewards[slot], weight)


def summed_anew(state: SwLinUcbState) -> SwLinUcbState:
    memory = state.memory
    z, kept = memory.inputs, jnp.arange(memory.arms.size) < memory.seen
    own = (memory.arms == jnp.arange(state.sums.moment.shape[0])[:, None]) & kept
    weighted = own[:, :, None] * z
    return SwLinUcbState(memory, Sums(jnp.swapaxes(weighted, 1, 2) @ z, memory.rewards @ weighted))
