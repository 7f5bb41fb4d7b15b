"""The compiled programs of a policy at work: a loop over decisions, and one over rewards.

How many there are is an argument: whether they come alone or many at once is the same program, and
the same bits. A program leaves the state that it was given as it is, and says whether the new one
is sound; whoever calls it keeps the one or the other. What goes in and out is packed into few
arrays, as each costs time, and short ones (`packed_state` says why).
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.agents.packed_state import SHORT, Parts, StateLayout, only_new
from driftbandits.agents.packed_tickets import (
    WORD,
    Layout,
    as_type,
    layout_of,
    pack,
    unpack,
)
from driftbandits.agents.soundness import are_probabilities, largest
from driftbandits.choice import parse
from driftbandits.core import (
    BanditSpec,
    Decision,
    Observation,
    Policy,
    PyTree,
    State,
    blank_observation,
)
from driftbandits.numerics.made_again import Made, making_again
from driftbandits.numerics.random_keys import any_key, key, key_of
from driftbandits.policies import POLICIES, build_policy
from driftbandits.simulation.devices import agents_device
from driftbandits.simulation.kept_functions import kept_function
from driftbandits.simulation.program_names import Name, agent_name

FEWEST, MOST = 4, 64  # decisions or rewards in one call of a program
LONG, FEWEST_OF_LONG = 8192, 16  # words, and rows, of a table that is large anyway
MOST_TABLES = 2  # of rewards and tickets, side by side
MANY = 256  # decisions or rewards in one call for large batches
FEW = 32  # with fewer in a call, large batches may have a program of their own
HEAD = 4  # words before those of the decisions
KEPT = 16  # sets of programs that are ready for the next agent, though none may use them now
REFUSED = -1  # in place of an arm
USUAL = 1e3  # with larger numbers in a ticket or a reward, a policy may become unusable


class RewardTables(NamedTuple):
    """Tables of rewards and tickets: how many in one call, and which words are in each table."""

    rows: int
    columns: list[slice]


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops over decisions and rewards; `acting` and `learning` describe inputs and outputs."""

    act: Callable[..., tuple[Parts, Array, tuple[Array, ...]]]
    learn: Callable[..., tuple[Parts, Array]]
    rows: int  # decisions in one call
    rewarded: RewardTables  # what `learn` takes


@dataclass(frozen=True, eq=False)
class Programs:
    """The programs of a policy."""

    spec: BanditSpec
    init: Callable[..., Parts]
    few: Loops
    many: Loops  # the same results, in fewer calls; compiled only where large batches are usual
    probabilities: Callable[[Parts, np.ndarray], Array]  # if `still`
    state: StateLayout
    ticket: Layout
    new_by_act: list[int]  # the places of the parts of the state that it gives
    new_by_learn: list[int]
    still: bool  # deciding changes nothing, so that several decisions have the same probabilities
    weighs: bool  # rewards are divided by the probability that their arm was drawn with
    many_is_ready: threading.Event = field(default_factory=threading.Event)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Programs":
        return self


Compile = Callable[[Callable[..., Any]], Callable[..., Any]]

_in_use: WeakValueDictionary[tuple[object, ...], Programs] = WeakValueDictionary()


def programs_for(policy: str, spec: BanditSpec, folder: Path | None = None) -> Programs:
    """The programs of a policy such as "recurrent(energy=0)", compiled once for all users.

    Some megabytes each: what nobody uses is kept for a while, what somebody uses is found always.
    With a folder, other processes find them there.
    """
    return compiled_programs(policy, spec, folder, POLICIES.version(parse("policy", policy).name))


@lru_cache(maxsize=KEPT)
def compiled_programs(policy: str, spec: BanditSpec, folder: Path | None, version: int) -> Programs:
    found = _in_use.get((policy, spec, folder, version))
    if found is None:
        compile_it = partial(kept_program, name=agent_name(policy, spec), folder=folder)
        found = new_programs(build_policy(policy, spec), spec, compile_it)
        _in_use[policy, spec, folder, version] = found
    return found


def kept_program(
    function: Callable[..., Any], name: Name | None, folder: Path | None
) -> Callable[..., Any]:
    own = name and (*name, function.__name__)
    return kept_function(function, own, folder, agents_device())


def new_programs(policy: Policy, spec: BanditSpec, compile_it: Compile) -> Programs:
    seen = look_at(policy, spec)
    state, ticket = StateLayout(blank_state(policy), seen.new_by_act), layout_of(seen.ticket)
    new_by_act, new_by_learn = state.places(seen.new_by_act), state.places(seen.new_by_learn)
    still = spec.context_dim == 0 and spec.arm_dim == 0 and not new_by_act

    def loops(name: str, rows: int, rewarded: RewardTables) -> Loops:
        act = acting(policy, spec, state, ticket, new_by_act, still, rows)
        learn = learning(policy, state, ticket, new_by_learn)
        act.__name__, learn.__name__ = f"act_{name}", f"learn_{name}"  # by which they are kept
        return Loops(compile_it(act), compile_it(learn), rows, rewarded)

    return Programs(
        spec=spec,
        init=compile_it(starting(policy, state)),
        few=loops("few", rows_together(spec, ticket, still), reward_tables(state, ticket)),
        many=loops("many", MANY, RewardTables(MANY, [slice(0, 1 + ticket.width)])),
        probabilities=compile_it(integrating(policy, spec, state)),
        state=state,
        ticket=ticket,
        new_by_act=new_by_act,
        new_by_learn=new_by_learn,
        still=still,
        weighs=seen.weighs,
    )


class Seen(NamedTuple):
    """What must be known of a policy before its programs are made."""

    ticket: PyTree  # its shapes and types
    new_by_act: list[bool]  # for each array of the state
    new_by_learn: list[bool]
    weighs: bool


def look_at(policy: Policy, spec: BanditSpec) -> Seen:
    """Traces a policy once, repeating a decision: a weighing ticket has the known probability."""
    found: list[Any] = []

    def look(state: State, observation: Observation, made: Made, reward: Array) -> PyTree:
        with making_again(made):
            decision, after = policy.act(key(0), state, observation)
        ticket = decision.ticket
        learned = policy.learn(state, ticket, reward)
        weighs = any(leaf is made.probability for leaf in jax.tree.leaves(ticket))
        found.extend([are_new(state, after), are_new(state, learned), weighs])
        return ticket

    made, reward = Made(np.int32(0), np.float32(0)), np.float32(0)
    blank = blank_state(policy)
    ticket = jax.eval_shape(look, blank, blank_observation(spec), made, reward)
    return Seen(ticket, *found)


def are_new(before: State, after: State) -> list[bool]:
    """Which arrays were not there before."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return [one is not other for one, other in pairs]


def rows_together(spec: BanditSpec, ticket: Layout, still: bool) -> int:
    """How many decisions a call may have before XLA treats its table as large."""
    asked = 0 if still else spec.context_dim + spec.num_arms
    widest = max(asked, 1 + ticket.width)
    rows = (SHORT - HEAD) // widest
    return min(rows, MOST) if rows >= FEWEST else rows_of_long(widest)


def reward_tables(state: StateLayout, ticket: Layout) -> RewardTables:
    """Several short tables side by side, as one more of them costs less than one more call.

    One long table, if XLA's second thread is woken anyway.
    """
    width = 1 + ticket.width
    each = math.ceil(width / MOST_TABLES)
    rows = SHORT // each - 1
    if state.has_large or rows < FEWEST:
        each, rows = width, rows_of_long(width)
    columns = [slice(first, min(first + each, width)) for first in range(0, width, each)]
    return RewardTables(min(rows, MOST), columns)


def rows_of_long(width: int) -> int:
    """Rows of a long table, which is not so long that one decision waits for it."""
    return min(max(LONG // width, FEWEST_OF_LONG), MOST)


@lru_cache(maxsize=64)
def blank_state(policy: Policy) -> State:
    """Shapes and types of a policy's state; without a cache, JAX would store each call."""
    return jax.eval_shape(policy.init, any_key())


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
    new_by_act: list[int],
    still: bool,
    rows: int,
) -> Callable[..., tuple[Parts, Array, tuple[Array, ...]]]:
    """The loop over decisions, up to `rows` of them.

    Takes words: the number of the first decision, how many there are, the random key (2), and for
    each its context and which arms are available, or for all of them if they share probabilities;
    and the features of the arms, if they have any. Gives the new parts of the state, a table of
    arms and tickets, and one of probabilities (unless they are those of the state). An arm that
    cannot be chosen is REFUSED. With `made`, which is another program, they are made again as they
    were before.
    """

    def act(
        parts: Parts, words: Array, made: Made | None, arms: Array | None
    ) -> tuple[Parts, Array, tuple[Array, ...]]:
        first, count = (as_type(word, jnp.int32) for word in words[:2])
        steps = key_of(words[2:HEAD])
        requests = words[HEAD:].reshape(-1, spec.context_dim + spec.num_arms)

        def decision_at(i: Array, state: State) -> tuple[Decision, State]:
            moment = jax.random.fold_in(steps, first + i)
            request = requests[0 if still else i]
            context = as_type(request[: spec.context_dim], jnp.float32)
            available = request[spec.context_dim :].astype(bool)
            with making_again(None if made is None else Made(made.arm[i], made.probability[i])):
                return policy.act(moment, state, Observation(context, available, arms))

        def decide(i: Array, carry: Any) -> Any:
            state, table, laws = carry
            (arm, probabilities, own), state = decision_at(i, state)
            if not still:
                arm = jnp.where(are_probabilities(probabilities), arm, REFUSED)
                laws = (laws[0].at[i].set(probabilities),)
            return state, table.at[i].set(pack((arm, own))), laws

        state = layout.unpack(parts)
        table = jnp.zeros((rows, 1 + ticket.width), WORD)
        laws = () if still else (jnp.zeros((rows, spec.num_arms)),)
        after, table, laws = jax.lax.fori_loop(0, count, decide, (state, table, laws))
        return only_new(layout.pack(after), new_by_act), table, laws

    return act


def integrating(
    policy: Policy, spec: BanditSpec, layout: StateLayout
) -> Callable[[Parts, Array], Array]:
    """The probabilities of a state, for arms that are available, where deciding does not change it.

    They are apart from the loop over decisions, as they may cost more than all else, and are not
    always wanted.
    """

    def probabilities(parts: Parts, available: Array) -> Array:
        observation = Observation(jnp.zeros(spec.context_dim), available)
        return policy.act(key(0), layout.unpack(parts), observation)[0].probabilities

    return probabilities


def learning(
    policy: Policy, layout: StateLayout, ticket: Layout, new_by_learn: list[int]
) -> Callable[..., tuple[Parts, Array]]:
    """The loop over rewards.

    Takes tables of words, side by side: in the first row how many there are, then a row for each,
    the reward before the ticket. Gives the new parts of the state, and the size of the largest
    number that was learned: infinite if the state is not one of finite numbers.
    """

    def learn(parts: Parts, tables: tuple[Array, ...]) -> tuple[Parts, Array]:
        def learn_one(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            state, size = carry
            row = jnp.concatenate([table[1 + i] for table in tables])
            reward = as_type(row[0], jnp.float32)
            own = unpack(ticket, row[1:])
            return policy.learn(state, own, reward), jnp.maximum(size, largest((own, reward)))

        count = as_type(tables[0][0, 0], jnp.int32)
        state = layout.unpack(parts)
        after, size = jax.lax.fori_loop(0, count, learn_one, (state, jnp.zeros(())))
        packed = layout.pack(after)
        size = jnp.where(layout.is_finite(packed), size, jnp.inf)
        return only_new(packed, new_by_learn), size

    return learn
