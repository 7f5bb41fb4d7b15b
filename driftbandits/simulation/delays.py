"""Delayed rewards: each waits with the ticket of its decision until it is due.

Rewards that arrive in the same step are learned in the order of their pulls.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Environment, Key, Policy, PyTree, State, blank_observation

NONE = -1


class Waiting(NamedTuple):
    """A ring buffer with a slot for each recent pull, and the slots due in each coming step.

    Rewards that arrive together form a linked list, so that the cost of learning one does not
    depend on how many are waiting.
    """

    tickets: PyTree  # (slots, ...) each leaf
    rewards: Array  # (slots,) float32
    first: Array  # (slots,) int32, by the step of arrival: the slot of the oldest pull, or NONE
    last: Array  # (slots,) int32, by the step of arrival: the slot of the newest pull
    following: Array  # (slots,) int32, by slot: the one that arrives after it in the same step


def nothing_waiting(policy: Policy, environment: Environment, key: Key) -> Waiting | None:
    """The empty buffer before the first pull; None if rewards are not delayed."""
    if environment.delay is None:
        return None
    spec, slots = environment.spec, environment.delay.longest + 1
    size = spec.num_arms if policy.sees_means else spec.context_dim
    example = policy.act(key, policy.init(key), blank_observation(spec, size))[0].ticket
    tickets = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), example)
    empty = jnp.full(slots, NONE, jnp.int32)
    return Waiting(
        tickets=tickets, rewards=jnp.zeros(slots), first=empty, last=empty, following=empty
    )


def add_waiting(
    waiting: Waiting, time: Array, delay: Array, ticket: PyTree, reward: Array
) -> Waiting:
    """Adds a delayed reward; its slot is free, as no reward takes longer than the ring."""
    tickets, rewards, first, last, following = waiting
    slots = rewards.size
    slot = jnp.asarray(time % slots, jnp.int32)
    arrival = jnp.where(delay < slots, (time + delay) % slots, slots)  # outside of the ring: never
    others = first.at[arrival].get(mode="fill", fill_value=NONE) != NONE
    before = jnp.where(others, last.at[arrival].get(mode="fill", fill_value=NONE), slots)
    return Waiting(
        tickets=jax.tree.map(lambda ring, value: ring.at[slot].set(value), tickets, ticket),
        rewards=rewards.at[slot].set(reward),
        first=first.at[jnp.where(others, slots, arrival)].set(slot, mode="drop"),
        last=last.at[arrival].set(slot, mode="drop"),
        following=following.at[slot].set(NONE).at[before].set(slot, mode="drop"),
    )


def learn_due(
    policy: Policy, policy_state: State, waiting: Waiting, time: Array
) -> tuple[State, Waiting]:
    """The policy learns from every reward that is due now, the oldest pull first."""
    due = time % waiting.rewards.size

    def learn_next(carry: tuple[State, Array]) -> tuple[State, Array]:
        policy_state, slot = carry
        ticket = jax.tree.map(lambda ring: ring[slot], waiting.tickets)
        return policy.learn(policy_state, ticket, waiting.rewards[slot]), waiting.following[slot]

    start = policy_state, waiting.first[due]
    policy_state, _ = jax.lax.while_loop(lambda carry: carry[1] != NONE, learn_next, start)
    return policy_state, waiting._replace(first=waiting.first.at[due].set(NONE))
