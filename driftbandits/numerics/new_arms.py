"""Policies where arms leave and others take their places: a new arm has nobody's past.

`observation.arm_ids` says which arm is in each place; another number than before means a new arm.
Numbers, rather than ages, because they mean the same to a policy that missed some steps, and
because a ticket can hold one: a late reward of an arm that has left must not be learned as its
successor's.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy, PyTree, State
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.random_keys import any_key, key_of
from driftbandits.numerics.shown import shown


class KnownArms(NamedTuple):
    """A policy's state, and the arms that it is about."""

    inner: State
    ids: Array  # (num_arms,) int32


class KnownTicket(NamedTuple):
    inner: PyTree
    arm: Array  # () int32
    id: Array  # () int32, of the arm in its place


class Change(NamedTuple):
    """A policy's state, while some of its arms are replaced."""

    inner: State
    is_new: Array  # (num_arms,) bool
    words: Array  # (2,) uint32, of the key that the new arms' entries come from


def forgetting_old_arms(policy: Policy, wider: Policy, spec: BanditSpec) -> Policy:
    """A policy that forgets an arm when another takes its place.

    Args:
        policy: The policy.
        wider: The same policy for one more arm, whose shapes show which axes are those of arms.
        spec: The problem of the policy.
    """
    num_arms = spec.num_arms
    mend = policy.forget or (lambda _, new, __: new)
    renew = renewal(policy, wider, spec)

    def replaced(change: Change) -> Change:
        old, is_new, words = change
        return change._replace(inner=mend(old, renew(key_of(words), old, is_new), is_new))

    def init(key: Key) -> KnownArms:
        return KnownArms(policy.init(key), jnp.zeros(num_arms, jnp.int32))

    def act(key: Key, state: KnownArms, observation: Observation) -> tuple[Decision, KnownArms]:
        ids = shown("arm_ids", observation.arm_ids, (num_arms,), "arms_change")
        own_key, fresh_key = jax.random.split(key)
        is_new = ids != state.ids
        change = Change(state.inner, is_new, jax.random.key_data(fresh_key))
        inner = occasionally(is_new.any(), replaced, change).inner
        decision, inner = policy.act(own_key, inner, observation)
        id = jnp.sum(ids, where=jnp.arange(num_arms) == decision.arm)
        ticket = KnownTicket(decision.ticket, decision.arm, id)
        return decision._replace(ticket=ticket), KnownArms(inner, ids)

    def learn(state: KnownArms, ticket: KnownTicket, reward: Array) -> KnownArms:
        here = jnp.any((jnp.arange(num_arms) == ticket.arm) & (state.ids == ticket.id))
        learned = policy.learn(state.inner, ticket.inner, reward)
        inner = jax.tree.map(lambda new, old: jnp.where(here, new, old), learned, state.inner)
        return state._replace(inner=inner)

    return policy._replace(init=init, act=act, learn=learn, forget=None)


def renewal(
    policy: Policy, wider: Policy, spec: BanditSpec
) -> Callable[[Key, State, Array], State]:
    """Puts the entries of a fresh state, drawn with a key, in the places of new arms."""
    shapes, wider_shapes = (
        [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(each.init, any_key()))]
        for each in (policy, wider)
    )
    axes = [arm_axes(*pair, spec) for pair in zip(shapes, wider_shapes, strict=True)]

    def renew(key: Key, state: State, is_new: Array) -> State:
        leaves, structure = jax.tree.flatten(state)
        fresh = jax.tree.leaves(policy.init(key))
        triples = zip(leaves, fresh, axes, strict=True)
        return jax.tree.unflatten(structure, [renewed(*triple, is_new) for triple in triples])

    return renew


def arm_axes(
    shape: tuple[int, ...], wider: tuple[int, ...], spec: BanditSpec
) -> list[tuple[int, int]]:
    """The axes of a leaf that have an entry for each arm, and where on the axis the first one is.

    The input of a network has the context, then the arms, then the last reward.
    """
    firsts = {spec.num_arms: 0, spec.context_dim + spec.num_arms + 1: spec.context_dim}
    return [
        (axis, firsts[own])
        for axis, (own, other) in enumerate(zip(shape, wider, strict=True))
        if other == own + 1 and own in firsts
    ]


def renewed(old: Array, fresh: Array, axes: list[tuple[int, int]], is_new: Array) -> Array:
    for axis, first in axes:
        rest = old.shape[axis] - first - is_new.size
        mask = jnp.concatenate([np.zeros(first, bool), is_new, np.zeros(rest, bool)])
        shape = [1] * old.ndim
        shape[axis] = old.shape[axis]
        old = jnp.where(mask.reshape(shape), fresh, old)
    return old
