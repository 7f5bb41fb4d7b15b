"""Linear policies on the features of the arms: the hybrid model of the last rewards.

A new reward is added to the sums and the oldest one subtracted. From time to time the sums are
computed again, so that rounding errors do not add up.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics import hybrid
from driftbandits.numerics.arms import without_new
from driftbandits.numerics.hybrid import HybridSums, Ridge
from driftbandits.numerics.hybrid_policy import Choose, HybridTicket
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.regression import Memory, empty_memory, store

RESUM_EVERY = 500  # rewards, or a quarter of the window if that is more


class WindowState(NamedTuple):
    sums: HybridSums
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
        solution = hybrid.solve(state.sums, rows, ridge)
        deviation = jnp.sqrt(hybrid.spread_of(solution, rows))
        mean = hybrid.mean_of(state.sums, solution)
        arm, probabilities = choose(key, mean, deviation, jnp.zeros(()), observation.available)
        return Decision(arm, probabilities, HybridTicket(hybrid.of_arm(rows, arm), arm)), state

    def learn(state: WindowState, ticket: HybridTicket, reward: Array) -> WindowState:
        sums, memory = state
        slot = memory.seen % window
        leaves = -(memory.seen >= window).astype(jnp.float32)
        oldest = memory.arms[slot], memory.inputs[slot], memory.rewards[slot]
        sums = hybrid.add(
            hybrid.add(sums, *oldest, leaves), ticket.arm, ticket.features, reward - low, 1.0
        )
        memory = store(memory, ticket.features, ticket.arm, reward - low)
        due = memory.seen % max(RESUM_EVERY, window // 4) == 0
        return occasionally(due, summed_again, WindowState(sums, memory))

    def summed_again(state: WindowState) -> WindowState:
        f, arms, rewards, seen = state.memory
        f = f * (jnp.arange(window) < seen)[:, None]
        _, d = hybrid.sizes(spec)
        own = (arms == jnp.arange(len(state.sums.own))[:, None])[:, :, None] * f[:, :d]
        sums = HybridSums(
            f.T @ f,
            jnp.einsum("knd,ns->kds", own, f),
            jnp.einsum("knd,ne->kde", own, f[:, :d]),
            rewards @ f,
            jnp.einsum("knd,n->kd", own, rewards),
        )
        return WindowState(sums, state.memory)

    def forget(old: WindowState, new: WindowState, is_new: Array) -> WindowState:
        """Past rewards of arms that have left count as those of arms that do not deviate."""
        arms = without_new(new.memory.arms, is_new)
        return new._replace(memory=new.memory._replace(arms=arms))

    return Policy(init, act, learn, forget=forget)
