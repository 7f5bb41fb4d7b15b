"""A policy with a memory: it acts and learns, a few decisions at a time, one after the other.

Two compiled loops, over decisions and over rewards, whose number is an argument: whether they come
alone or many at once is the same program, and the same bits. The keys are those of a simulation's
first run, so that an agent with its seed decides as the simulation does.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.agents.growth import grown, rows_grown
from driftbandits.agents.packed_tickets import WORD, Layout, layout_of, pack, unpack
from driftbandits.core import BanditSpec, Decision, Policy, PyTree, State
from driftbandits.numerics.random_keys import THREEFRY, key
from driftbandits.policies import build_policy
from driftbandits.simulation import compiling
from driftbandits.simulation.devices import agents_device
from driftbandits.simulation.engine import block_keys

REHEARSED = 16  # decisions that show whether a state makes sense
TOGETHER = 256  # decisions or rewards in one call of a program, at the most


class Acts(NamedTuple):
    """What was decided, in order."""

    arms: np.ndarray  # (n,) int32
    probabilities: np.ndarray  # (n, num_arms) float32
    tickets: np.ndarray  # (n, words) uint32


class Programs(NamedTuple):
    init: Callable[..., State]
    act: Callable[..., tuple[State, Array, Array, Array]]
    learn: Callable[..., State]
    ticket: Layout
    still: bool  # deciding changes nothing, so that several decisions have the same probabilities
    blank: State  # shapes and types of a state


@lru_cache(maxsize=64)
def programs_for(policy: Policy, spec: BanditSpec) -> Programs:
    """The two loops; the same arguments give the same object, so nothing is compiled twice."""
    blank = jax.eval_shape(policy.init, key(0))
    context, everyone = jnp.zeros(spec.context_dim), jnp.ones(spec.num_arms, bool)
    decision = jax.eval_shape(policy.act, key(0), blank, context, everyone)[0]
    ticket = layout_of(decision.ticket)
    still = spec.context_dim == 0 and keeps_its_state(policy, blank, context, everyone)
    act, learn = acting(policy, spec, ticket, still), learning(policy, ticket)
    loop = partial(compiling.jit, donate_argnums=0)
    return Programs(compiling.jit(policy.init), loop(act), loop(learn), ticket, still, blank)


def acting(
    policy: Policy, spec: BanditSpec, ticket: Layout, still: bool
) -> Callable[..., tuple[State, Array, Array, Array]]:
    """The loop over decisions."""

    def act(
        state: State, first: Array, count: Array, words: Array, contexts: Array, available: Array
    ) -> tuple[State, Array, Array, Array]:
        steps = jax.random.wrap_key_data(words, impl=THREEFRY)

        def decision_at(i: Array, state: State) -> tuple[Decision, State]:
            moment = jax.random.fold_in(steps, first + i)
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
        return jax.lax.fori_loop(0, count, decide, (state, *empty))

    return act


def learning(policy: Policy, ticket: Layout) -> Callable[..., State]:
    """The loop over rewards."""

    def learn(state: State, count: Array, tickets: Array, rewards: Array) -> State:
        def learn_one(i: Array, state: State) -> State:
            return policy.learn(state, unpack(ticket, tickets[i]), rewards[i])

        return jax.lax.fori_loop(0, count, learn_one, state)

    return learn


def keeps_its_state(policy: Policy, blank: State, context: Array, everyone: Array) -> bool:
    """Whether `act` gives back the very state that it was given."""
    same = False

    def look(state: State) -> None:
        nonlocal same
        after = jax.tree.leaves(policy.act(key(0), state, context, everyone)[1])
        same = all(a is b for a, b in zip(after, jax.tree.leaves(state), strict=True))

    jax.eval_shape(look, blank)
    return same


class Learner:
    """A policy's state, moved forward by decisions and rewards."""

    def __init__(self, policy: str, spec: BanditSpec, seed: int) -> None:
        with jax.default_device(agents_device()):
            keys = block_keys(key(seed), 1, 0)
        self._text, self._start = policy, keys.policy_start[0]
        self._words = np.asarray(jax.random.key_data(keys.steps[0, 2]))
        self.decisions = 0
        self._shape(spec)
        self._state = self._fresh()

    def _shape(self, spec: BanditSpec) -> None:
        self.spec, self._policy = spec, build_policy(self._text, spec)
        if self._policy.sees_means:
            check.fail("policy", "one that does not need the true means", self._text)
        self._programs = programs_for(self._policy, spec)
        self._contexts = np.zeros((TOGETHER, spec.context_dim), np.float32)
        self._available = np.zeros((TOGETHER, spec.num_arms), bool)
        self._rewards = np.zeros(TOGETHER, np.float32)
        self._tickets = np.zeros((TOGETHER, self.ticket_width), WORD)

    @property
    def ticket_width(self) -> int:
        return self._programs.ticket.width

    @property
    def state_bytes(self) -> int:
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self._state))

    @property
    def ticket_layout(self) -> Layout:
        return self._programs.ticket

    def _fresh(self) -> State:
        with jax.default_device(agents_device()):
            return bound(self._programs.init(self._start))

    def act(self, contexts: np.ndarray, available: np.ndarray) -> Acts:
        """Decides for each row of contexts and of available arms."""
        if len(available) == 1:  # most come alone
            return self._act(contexts, available)
        parts = [self._act(contexts[part], available[part]) for part in self._parts(available)]
        return parts[0] if len(parts) == 1 else Acts(*map(np.concatenate, zip(*parts, strict=True)))

    def _parts(self, available: np.ndarray) -> Iterator[slice]:
        """Rows for one call: not too many, and of one mask where they share probabilities."""
        ends = set(range(0, len(available), TOGETHER)) | {len(available)}
        if self._programs.still:
            ends |= set(np.flatnonzero(np.any(available[1:] != available[:-1], axis=1)) + 1)
        return (slice(first, last) for first, last in pairwise(sorted(ends)))

    def _act(self, contexts: np.ndarray, available: np.ndarray) -> Acts:
        count = len(contexts)
        self._contexts[:count], self._available[:count] = contexts, available
        self._state, *rows = self._programs.act(
            self._state, np.int32(self.decisions), np.int32(count), self._words,
            self._contexts, self._available,
        )  # fmt: skip
        self.decisions += count
        return Acts(*(np.asarray(leaf)[:count] for leaf in rows))

    def learn(self, tickets: np.ndarray, rewards: np.ndarray) -> None:
        """Learns the reward of each row of tickets."""
        for first in range(0, len(rewards), TOGETHER):
            part = slice(first, first + TOGETHER)
            count = len(rewards[part])
            self._tickets[:count], self._rewards[:count] = tickets[part], rewards[part]
            self._state = self._programs.learn(
                self._state, np.int32(count), self._tickets, self._rewards
            )
            # JAX copies a large array behind our back, and the next call writes into this one.
            jax.block_until_ready(self._state)

    def warm_up(self) -> None:
        """Runs both programs for no decision and no reward, on a copy."""
        none, state = np.int32(0), on_device(self._state)
        state = self._programs.act(
            state, none, none, self._words, self._contexts, self._available
        )[0]  # fmt: skip
        self._programs.learn(state, none, self._tickets, self._rewards)

    def rehearse(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Probabilities of a few decisions, and the state after their rewards; made on a copy."""
        count, everyone = np.int32(REHEARSED), np.ones_like(self._available)
        state, _, probabilities, tickets = self._programs.act(
            on_device(self._state), np.int32(self.decisions), count, self._words,
            np.zeros_like(self._contexts), everyone,
        )  # fmt: skip
        rewards = np.resize(np.array(self.spec.reward_range, np.float32), TOGETHER)
        state = self._programs.learn(state, count, np.asarray(tickets), rewards)
        return np.asarray(probabilities)[:REHEARSED], arrays_by_path(state)

    def grow(self, num_arms: int, tickets: np.ndarray) -> np.ndarray:
        """More arms, which start from the prior; gives the open tickets in their new shape."""
        arms, state, layout = self.spec.num_arms, self._state, self._programs.ticket
        self._shape(self.spec._replace(num_arms=num_arms))
        self._state = on_device(grown(state, self._fresh(), arms, num_arms - arms))
        return rows_grown(tickets, layout, self._programs.ticket, arms, num_arms - arms)

    def state(self) -> dict[str, np.ndarray]:
        """Every array of the state, by its path."""
        return arrays_by_path(self._state)

    def set_state(self, arrays: dict[str, np.ndarray], decisions: int) -> None:
        """Goes on from a state; one of other names or shapes is refused with a ValueError."""
        wanted = shapes_by_path(self._state)
        if state_shapes(arrays) != wanted:
            raise ValueError("a state of another shape")
        structure = jax.tree.structure(self._state)
        state = jax.tree.unflatten(structure, [arrays[name] for name in wanted])
        self._state, self.decisions = on_device(state), decisions


def arrays_by_path(state: State) -> dict[str, np.ndarray]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path): np.array(leaf) for path, leaf in leaves}


Shapes = dict[str, tuple[tuple[int, ...], np.dtype]]  # of the arrays of a state, by their paths


def shapes_by_path(state: State) -> Shapes:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}


def state_shapes(arrays: dict[str, np.ndarray]) -> Shapes:
    return {path: (array.shape, array.dtype) for path, array in arrays.items()}


def wanted_shapes(policy: str, spec: BanditSpec) -> Shapes:
    """Those of a policy's state, found without making one."""
    return shapes_by_path(programs_for(build_policy(policy, spec), spec).blank)


def on_device(state: PyTree) -> State:
    """Copies of our own: a program gives the memory of its state to the next one."""
    with jax.default_device(agents_device()):
        return bound(jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), state))


def bound(state: State) -> State:
    """Programs that are given this state run on the agents' device, without being told so."""
    return jax.device_put(state, agents_device())
