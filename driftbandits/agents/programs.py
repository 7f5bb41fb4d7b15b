"""The compiled programs of a policy at work: a loop over decisions, and one over rewards.

How many there are is an argument: whether they come alone or many at once is the same program, and
the same bits. A program leaves the state that it was given as it is, and says whether the new one
is sound; whoever calls it keeps the one or the other. What goes in and out is packed into few
arrays, as each costs time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.agents.packed_state import Parts, StateLayout, only_new
from driftbandits.agents.packed_tickets import (
    WORD,
    Layout,
    as_type,
    as_words,
    layout_of,
    pack,
    unpack,
)
from driftbandits.agents.soundness import are_probabilities, largest
from driftbandits.core import BanditSpec, Decision, Policy, PyTree, State
from driftbandits.numerics.made_again import Made, making_again
from driftbandits.numerics.random_keys import THREEFRY, any_key, key, key_of
from driftbandits.policies import build_policy
from driftbandits.simulation.devices import agents_device
from driftbandits.simulation.kept_functions import kept_function
from driftbandits.simulation.program_names import Name, agent_name

TOGETHER = 128  # decisions or rewards in one call of a program, at the most
KEPT = 16  # sets of programs that are ready for the next agent, though none may use them now
REFUSED = -1  # in place of the arms
USUAL = 1e3  # with larger numbers in a ticket or a reward, a linear policy may become unusable


@dataclass(frozen=True, eq=False)
class Programs:
    """What they take and give is in `acting` and `learning`."""

    init: Callable[..., Parts]
    act: Callable[..., tuple[Parts, Array]]
    learn: Callable[..., tuple[Parts, Array]]
    state: StateLayout
    ticket: Layout
    new_by_act: list[bool]  # which parts of the state it gives
    new_by_learn: list[bool]
    still: bool  # deciding changes nothing, so that several decisions have the same probabilities
    weighs: bool  # rewards are divided by the probability that their arm was drawn with


Compile = Callable[[Callable[..., Any]], Callable[..., Any]]

_in_use: WeakValueDictionary[tuple[str, BanditSpec, Path | None], Programs] = WeakValueDictionary()


@lru_cache(maxsize=KEPT)
def programs_for(policy: str, spec: BanditSpec, folder: Path | None = None) -> Programs:
    """Those of a policy such as "recurrent(energy=0)", compiled once for all who use them.

    Some megabytes each: what nobody uses is kept for a while, what somebody uses is found always.
    With a folder, other processes find them there.
    """
    found = _in_use.get((policy, spec, folder))
    if found is None:
        compile_it = partial(kept_program, name=agent_name(policy, spec), folder=folder)
        found = new_programs(build_policy(policy, spec), spec, compile_it)
        _in_use[policy, spec, folder] = found
    return found


def kept_program(
    function: Callable[..., Any], name: Name | None, folder: Path | None
) -> Callable[..., Any]:
    own = name and (*name, function.__name__)
    return kept_function(function, own, folder, agents_device())


def new_programs(policy: Policy, spec: BanditSpec, compile_it: Compile) -> Programs:
    state = StateLayout(blank_state(policy))
    # NumPy's: JAX would compile a program for every shape, and keep it for ever.
    context, everyone = np.zeros(spec.context_dim, np.float32), np.ones(spec.num_arms, bool)
    decision = jax.eval_shape(policy.act, any_key(), state.blank, context, everyone)[0]
    ticket = layout_of(decision.ticket)

    def after_act(known: State, context: Array, everyone: Array) -> State:
        return policy.act(key(0), known, context, everyone)[1]

    def after_learn(known: State, own: PyTree, reward: Array) -> State:
        return policy.learn(known, own, reward)

    new_by_act = new_parts(state, after_act, context, everyone)
    new_by_learn = new_parts(state, after_learn, decision.ticket, np.float32(0))
    still = spec.context_dim == 0 and not any(new_by_act)
    act = acting(policy, spec, state, ticket, new_by_act, still)
    learn = learning(policy, spec, state, ticket, new_by_learn)
    init, act, learn = (compile_it(each) for each in (starting(policy, state), act, learn))
    weighs = weighs_rewards(policy, state.blank, context, everyone)
    return Programs(init, act, learn, state, ticket, new_by_act, new_by_learn, still, weighs)


@lru_cache(maxsize=64)
def blank_state(policy: Policy) -> State:
    """Shapes and types of a policy's state; JAX itself remembers each time that it is asked."""
    return jax.eval_shape(policy.init, any_key())


def new_parts(layout: StateLayout, after: Callable[..., State], *given: Any) -> list[bool]:
    """Of each part of a state, whether the function gives another one than it was given."""
    found: list[bool] = []

    def look(state: State, *given: Any) -> None:
        found.extend(layout.are_new(state, after(state, *given)))

    jax.eval_shape(look, layout.blank, *given)
    return found


# Functions of their own, as JAX keeps what it has compiled for as long as the function lives.


def starting(policy: Policy, layout: StateLayout) -> Callable[[Array], Parts]:
    def init(words: Array) -> Parts:
        return layout.pack(policy.init(key_of(words)))

    return init


def acting(
    policy: Policy,
    spec: BanditSpec,
    layout: StateLayout,
    ticket: Layout,
    new_by_act: list[bool],
    still: bool,
) -> Callable[..., tuple[Parts, Array]]:
    """The loop over decisions.

    Takes four words (the number of the first decision, how many there are, the random key) and a
    table with a row for each: its context, and which arms are available. Gives the new parts of the
    state, and a table: arm, probabilities, ticket. If not all can be made, all arms are REFUSED.
    With `made`, which is another program, they are made again as they were before.
    """

    def act(
        parts: Parts, numbers: Array, requests: Array, made: Made | None
    ) -> tuple[Parts, Array]:
        first, count = (as_type(word, jnp.int32) for word in numbers[:2])
        steps = jax.random.wrap_key_data(numbers[2:], impl=THREEFRY)

        def decision_at(i: Array, state: State) -> tuple[Decision, State]:
            moment = jax.random.fold_in(steps, first + i)
            context = as_type(requests[i, : spec.context_dim], jnp.float32)
            available = requests[i, spec.context_dim :].astype(bool)
            with making_again(None if made is None else Made(made.arm[i], made.probability[i])):
                return policy.act(moment, state, context, available)

        state = layout.unpack(parts)
        shared = decision_at(jnp.int32(0), state)[0].probabilities if still else None

        def decide(i: Array, carry: Any) -> Any:
            state, arms, probabilities, tickets = carry
            decision, state = decision_at(i, state)
            row = decision.probabilities if shared is None else shared
            rows = arms.at[i].set(decision.arm), probabilities.at[i].set(row)
            return state, *rows, tickets.at[i].set(pack(decision.ticket))

        most = len(requests)
        empty = (
            jnp.zeros(most, jnp.int32),
            jnp.zeros((most, spec.num_arms)),
            jnp.zeros((most, ticket.width), WORD),
        )
        after, arms, probabilities, tickets = jax.lax.fori_loop(0, count, decide, (state, *empty))
        sound = (are_probabilities(probabilities) | (jnp.arange(most) >= count)).all()
        arms = jnp.where(sound, arms, REFUSED)
        rows = jnp.column_stack([as_words(arms), as_words(probabilities), tickets])
        return only_new(layout.pack(after), new_by_act), rows

    return act


def learning(
    policy: Policy,
    spec: BanditSpec,
    layout: StateLayout,
    ticket: Layout,
    new_by_learn: list[bool],
) -> Callable[..., tuple[Parts, Array]]:
    """The loop over rewards.

    Takes how many there are, and a table with a row for each: the reward and the ticket. Gives the
    new parts of the state, and whether it is sound.
    """

    def is_usable(state: State) -> Array:
        """A matrix of finite numbers may still be one that no linear policy can decide with."""
        nowhere, everyone = jnp.zeros(spec.context_dim), jnp.ones(spec.num_arms, bool)
        decision, _ = policy.act(key(0), state, nowhere, everyone)
        return are_probabilities(decision.probabilities)

    def learn(parts: Parts, count: Array, rewarded: Array) -> tuple[Parts, Array]:
        def learn_one(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            state, size = carry
            reward = as_type(rewarded[i, 0], jnp.float32)
            own = unpack(ticket, rewarded[i, 1:])
            return policy.learn(state, own, reward), jnp.maximum(size, largest((own, reward)))

        state = layout.unpack(parts)
        after, size = jax.lax.fori_loop(0, count, learn_one, (state, jnp.zeros(())))
        new = only_new(layout.pack(after), new_by_learn)
        sound = layout.is_finite(layout.pack(after))
        if spec.context_dim:
            sound &= jax.lax.cond(size > USUAL, is_usable, lambda _: jnp.array(True), after)
        return new, sound

    return learn


def weighs_rewards(policy: Policy, blank: State, context: np.ndarray, everyone: np.ndarray) -> bool:
    """Whether the ticket of a decision holds the probability of its arm."""
    held = False

    def look(state: State, context: Array, everyone: Array, made: Made) -> None:
        nonlocal held
        with making_again(made):
            ticket = policy.act(key(0), state, context, everyone)[0].ticket
        held = any(leaf is made.probability for leaf in jax.tree.leaves(ticket))

    jax.eval_shape(look, blank, context, everyone, Made(np.int32(0), np.float32(0)))
    return held
