"""The compiled programs of a policy at work: a loop over decisions, and one over rewards.

How many there are is an argument: whether they come alone or many at once is the same program, and
the same bits. Whatever would leave a memory that is not sound changes nothing.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.agents.packed_tickets import WORD, Layout, layout_of, pack, unpack
from driftbandits.agents.soundness import are_probabilities, is_finite, largest
from driftbandits.core import BanditSpec, Decision, Policy, State
from driftbandits.numerics.made_again import Made, making_again
from driftbandits.numerics.random_keys import THREEFRY, key
from driftbandits.simulation import compiling

TOGETHER = 256  # decisions or rewards in one call of a program, at the most
REFUSED = -1  # in place of the arms
USUAL = 1e3  # with larger numbers in a ticket or a reward, a linear policy may become unusable


class Programs(NamedTuple):
    init: Callable[..., State]
    act: Callable[..., tuple[State, Array, Array, Array]]
    learn: Callable[..., tuple[State, Array]]
    copy: Callable[[State], State]  # as the others give the memory of a state to the next one
    ticket: Layout
    blank: State  # shapes and types of a state
    still: bool  # deciding changes nothing, so that several decisions have the same probabilities
    weighs: bool  # rewards are divided by the probability that their arm was drawn with


@lru_cache(maxsize=64)
def programs_for(policy: Policy, spec: BanditSpec) -> Programs:
    """The two loops; the same arguments give the same object, so nothing is compiled twice."""
    blank = jax.eval_shape(policy.init, key(0))
    context, everyone = jnp.zeros(spec.context_dim), jnp.ones(spec.num_arms, bool)
    decision = jax.eval_shape(policy.act, key(0), blank, context, everyone)[0]
    ticket = layout_of(decision.ticket)
    still = spec.context_dim == 0 and keeps_its_state(policy, blank, context, everyone)
    act, learn = acting(policy, spec, ticket, still), learning(policy, spec, ticket)
    act, learn = (compiling.jit(each, donate_argnums=0) for each in (act, learn))
    init, copy = compiling.jit(policy.init), compiling.jit(copied)
    weighs = weighs_rewards(policy, blank, context, everyone)
    return Programs(init, act, learn, copy, ticket, blank, still, weighs)


def copied(state: State) -> State:
    return jax.tree.map(jnp.copy, state)


def acting(
    policy: Policy, spec: BanditSpec, ticket: Layout, still: bool
) -> Callable[..., tuple[State, Array, Array, Array]]:
    """The loop over decisions; if not all of them can be made, all arms are REFUSED.

    With `made`, which is another program, they are made again as they were before.
    """

    def act(
        state: State,
        first: Array,
        count: Array,
        words: Array,
        contexts: Array,
        available: Array,
        made: Made | None,
    ) -> tuple[State, Array, Array, Array]:
        steps = jax.random.wrap_key_data(words, impl=THREEFRY)

        def decision_at(i: Array, state: State) -> tuple[Decision, State]:
            moment = jax.random.fold_in(steps, first + i)
            with making_again(None if made is None else Made(made.arm[i], made.probability[i])):
                return policy.act(moment, state, contexts[i], available[i])

        shared = decision_at(jnp.int32(0), state)[0].probabilities if still else None

        def decide(i: Array, carry: Any) -> Any:
            state, arms, probabilities, tickets = carry
            made, state = decision_at(i, state)
            row = made.probabilities if shared is None else shared
            rows = arms.at[i].set(made.arm), probabilities.at[i].set(row)
            return state, *rows, tickets.at[i].set(pack(made.ticket))

        empty = (
            jnp.zeros(TOGETHER, jnp.int32),
            jnp.zeros((TOGETHER, spec.num_arms)),
            jnp.zeros((TOGETHER, ticket.width), WORD),
        )
        after, arms, probabilities, tickets = jax.lax.fori_loop(0, count, decide, (state, *empty))
        sound = (are_probabilities(probabilities) | (jnp.arange(TOGETHER) >= count)).all()
        return chosen(sound, after, state), jnp.where(sound, arms, REFUSED), probabilities, tickets

    return act


def learning(
    policy: Policy, spec: BanditSpec, ticket: Layout
) -> Callable[..., tuple[State, Array]]:
    """The loop over rewards; the second result is whether they were learned, all or none."""

    def is_usable(state: State) -> Array:
        """A matrix of finite numbers may still be one that no linear policy can decide with."""
        nowhere, everyone = jnp.zeros(spec.context_dim), jnp.ones(spec.num_arms, bool)
        decision, _ = policy.act(key(0), state, nowhere, everyone)
        return are_probabilities(decision.probabilities)

    def learn(state: State, count: Array, tickets: Array, rewards: Array) -> tuple[State, Array]:
        def learn_one(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            state, size = carry
            own = unpack(ticket, tickets[i])
            size = jnp.maximum(size, largest((own, rewards[i])))
            return policy.learn(state, own, rewards[i]), size

        after, size = jax.lax.fori_loop(0, count, learn_one, (state, jnp.zeros(())))
        sound = is_finite(after)
        if spec.context_dim:
            sound &= jax.lax.cond(size > USUAL, is_usable, lambda _: jnp.array(True), after)
        return chosen(sound, after, state), sound

    return learn


def chosen(condition: Array, one: State, other: State) -> State:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def keeps_its_state(policy: Policy, blank: State, context: Array, everyone: Array) -> bool:
    """Whether `act` gives back the very state that it was given."""
    same = False

    def look(state: State) -> None:
        nonlocal same
        after = jax.tree.leaves(policy.act(key(0), state, context, everyone)[1])
        same = all(a is b for a, b in zip(after, jax.tree.leaves(state), strict=True))

    jax.eval_shape(look, blank)
    return same


def weighs_rewards(policy: Policy, blank: State, context: Array, everyone: Array) -> bool:
    """Whether the ticket of a decision holds the probability of its arm."""
    held = False

    def look(state: State, probability: Array) -> None:
        nonlocal held
        with making_again(Made(jnp.int32(0), probability)):
            ticket = policy.act(key(0), state, context, everyone)[0].ticket
        held = any(leaf is probability for leaf in jax.tree.leaves(ticket))

    jax.eval_shape(look, blank, jnp.zeros(()))
    return held
