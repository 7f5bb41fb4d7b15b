"""Linear policies on the features of the arms: the hybrid model of the last rewards.

A new reward is added to the sums and the oldest one subtracted. From time to time the sums are
computed again, so that rounding errors do not add up.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics import hybrid
from driftbandits.numerics.arms import without_new
from driftbandits.numerics.hybrid import HybridSums, Ridge
from driftbandits.numerics.hybrid_policy import Choose, HybridTicket
from driftbandits.numerics.hybrid_precision import Split, in_float64, joined, split
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.regression import Memory, empty_memory, store

RESUM_EVERY = 500  # rewards, or a quarter of the window if that is more
BLOCK = 256  # rewards that are summed at once: a row for each of them and each arm


class WindowState(NamedTuple):
    sums: Split  # of HybridSums
    memory: Memory  # of features, arms and rewards in the window


def window_policy(
    spec: BanditSpec, ridge: Ridge, choose: Choose, *, window: int, low: float
) -> Policy:
    """A policy that knows the last `window` rewards."""
    length, _ = hybrid.sizes(spec)

    def init(key: Key) -> WindowState:
        return WindowState(hybrid.no_sums(spec, ridge), empty_memory(window, length))

    def act(key: Key, state: WindowState, observation: Observation) -> tuple[Decision, WindowState]:
        rows = hybrid.features_of(observation, spec)
        mean, deviation = predict(state.sums, rows)
        arm, probabilities = choose(key, mean, deviation, jnp.zeros(()), observation.available)
        return Decision(arm, probabilities, HybridTicket(hybrid.of_arm(rows, arm), arm)), state

    @in_float64
    def predict(known: Split, rows: Array) -> tuple[Array, Array]:
        """The mean and the deviation of every arm."""
        sums = joined(known)
        solution = hybrid.solve(sums, rows, ridge)
        return hybrid.mean_of(sums, solution), jnp.sqrt(hybrid.spread_of(solution, rows))

    def learn(state: WindowState, ticket: HybridTicket, reward: Array) -> WindowState:
        sums, memory = state
        slot = memory.seen % window
        leaves = -(memory.seen >= window).astype(jnp.float32)
        oldest = memory.arms[slot], memory.inputs[slot], memory.rewards[slot], leaves
        sums = moved(sums, oldest, (ticket.arm, ticket.features, reward - low, 1.0))
        memory = store(memory, ticket.features, ticket.arm, reward - low)
        due = memory.seen % max(RESUM_EVERY, window // 4) == 0
        return occasionally(due, summed_again, WindowState(sums, memory))

    def summed_again(state: WindowState) -> WindowState:
        def add_next(i: Array, sums: Split) -> Split:
            return add_block(sums, *block_of(state.memory, i))

        blocks = -(-window // BLOCK)
        sums = jax.lax.fori_loop(0, blocks, add_next, hybrid.no_sums(spec, ridge))
        return WindowState(sums, state.memory)

    def forget(old: WindowState, new: WindowState, is_new: Array) -> WindowState:
        """Past rewards of arms that have left count as those of arms that do not deviate."""
        arms = without_new(new.memory.arms, is_new)
        return new._replace(memory=new.memory._replace(arms=arms))

    return Policy(init, act, learn, forget=forget)


@in_float64
def moved(sums: Split, *changes: tuple[Array, Array, Array, Array | float]) -> Split:
    """The sums after some rewards more or less: arms, features, rewards and weights."""
    found = joined(sums)
    for change in changes:
        found = hybrid.add(found, *change)
    return split(found)


def block_of(memory: Memory, block: Array) -> tuple[Array, Array, Array]:
    """Features, arms and rewards of one block of the memory; features of 0 do not count."""
    slots = block * BLOCK + jnp.arange(BLOCK)
    kept = slots < jnp.minimum(memory.seen, memory.arms.size)
    features = jnp.where(kept[:, None], memory.inputs[slots], 0.0)
    return features, memory.arms[slots], memory.rewards[slots]


@in_float64
def add_block(sums: Split, f: Array, arms: Array, rewards: Array) -> Split:
    num_arms, d = sums.high.own_moment.shape  # no arms where they do not deviate
    x = f[:, :d]
    own_x = (arms == jnp.arange(num_arms)[:, None])[:, :, None] * x
    block = HybridSums(
        f.T @ f,
        jnp.einsum("knd,ns->kds", own_x, f),
        jnp.einsum("knd,ne->kde", own_x, x),
        rewards @ f,
        jnp.einsum("knd,n->kd", own_x, rewards),
    )
    return split(jax.tree.map(jnp.add, joined(sums), block))
