"""A policy with a memory: it acts and learns, a few decisions at a time, one after the other.

Two compiled loops, over decisions and over rewards, whose number is an argument: whether they come
alone or many at once is the same program, and the same bits. The keys are those of a simulation's
first run, so that an agent with its seed decides as the simulation does.

Whatever would leave something in the policy's memory that is not a finite number is refused, and
changes nothing: the memory from before is kept until the one after it was looked at.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.agents.growth import grown, rows_grown
from driftbandits.agents.packed_tickets import WORD, Layout, layout_of, pack, unpack
from driftbandits.agents.soundness import are_probabilities, is_finite
from driftbandits.core import BanditSpec, Decision, Policy, PyTree, State
from driftbandits.numerics.random_keys import THREEFRY, key
from driftbandits.policies import build_policy
from driftbandits.simulation import compiling
from driftbandits.simulation.devices import agents_device
from driftbandits.simulation.engine import block_keys

TOGETHER = 256  # decisions or rewards in one call of a program, at the most


class DivergenceError(ArithmeticError):
    """The policy cannot decide: its probabilities, or its memory, would not be finite numbers."""


class Acts(NamedTuple):
    """What was decided, in order."""

    arms: np.ndarray  # (n,) int32
    probabilities: np.ndarray  # (n, num_arms) float32
    tickets: np.ndarray  # (n, words) uint32


def joined(parts: list[Acts]) -> Acts:
    return parts[0] if len(parts) == 1 else Acts(*map(np.concatenate, zip(*parts, strict=True)))


class Programs(NamedTuple):
    init: Callable[..., State]
    act: Callable[..., tuple[State, Array, Array, Array, Array]]
    learn: Callable[..., tuple[State, Array]]
    ticket: Layout
    still: bool  # deciding changes nothing, so that several decisions have the same probabilities


@lru_cache(maxsize=64)
def programs_for(policy: Policy, spec: BanditSpec) -> Programs:
    """The two loops; the same arguments give the same object, so nothing is compiled twice."""
    blank = jax.eval_shape(policy.init, key(0))
    context, everyone = jnp.zeros(spec.context_dim), jnp.ones(spec.num_arms, bool)
    decision = jax.eval_shape(policy.act, key(0), blank, context, everyone)[0]
    ticket = layout_of(decision.ticket)
    still = spec.context_dim == 0 and keeps_its_state(policy, blank, context, everyone)
    act, learn = acting(policy, spec, ticket, still), learning(policy, spec, ticket)
    init, act, learn = (compiling.jit(each) for each in (policy.init, act, learn))
    return Programs(init, act, learn, ticket, still)


def acting(
    policy: Policy, spec: BanditSpec, ticket: Layout, still: bool
) -> Callable[..., tuple[State, Array, Array, Array, Array]]:
    """The loop over decisions; the second result is whether all went well."""

    def act(
        state: State, first: Array, count: Array, words: Array, contexts: Array, available: Array
    ) -> tuple[State, Array, Array, Array, Array]:
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
        state, arms, probabilities, tickets = jax.lax.fori_loop(0, count, decide, (state, *empty))
        sound = are_probabilities(probabilities) | (jnp.arange(TOGETHER) >= count)
        return state, is_finite(state) & sound.all(), arms, probabilities, tickets

    return act


def learning(
    policy: Policy, spec: BanditSpec, ticket: Layout
) -> Callable[..., tuple[State, Array]]:
    """The loop over rewards; the second result is whether all went well."""

    def is_usable(state: State) -> Array:
        """A matrix of finite numbers may still be one that no linear policy can decide with."""
        if not spec.context_dim:
            return is_finite(state)
        nowhere, everyone = jnp.zeros(spec.context_dim), jnp.ones(spec.num_arms, bool)
        decision, _ = policy.act(key(0), state, nowhere, everyone)
        return is_finite(state) & are_probabilities(decision.probabilities)

    def learn(state: State, count: Array, tickets: Array, rewards: Array) -> tuple[State, Array]:
        def learn_one(i: Array, state: State) -> State:
            return policy.learn(state, unpack(ticket, tickets[i]), rewards[i])

        state = jax.lax.fori_loop(0, count, learn_one, state)
        return state, is_usable(state)

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

    def _fresh(self) -> State:
        with jax.default_device(agents_device()):
            return bound(self._programs.init(self._start))

    def act(self, contexts: np.ndarray, available: np.ndarray) -> Acts:
        """Decides for each row of contexts and of available arms.

        All of them or, with DivergenceError, none.
        """
        if len(available) == 1:  # most come alone
            return self._act(contexts, available)
        before = self._state, self.decisions
        try:
            parts = [self._act(contexts[part], available[part]) for part in self._parts(available)]
        except DivergenceError:
            self._state, self.decisions = before
            raise
        return joined(parts)

    def act_again(
        self, contexts: np.ndarray, available: np.ndarray, arms: np.ndarray
    ) -> tuple[Acts, list[int]]:
        """Decides where the arms are known; gives the places where it chose another one.

        There it decides again with no other arm to choose, so that it learns of the right one.
        """
        made: list[Acts] = []
        different: list[int] = []
        first, many = 0, len(arms)
        while first < len(arms):
            before, part = (self._state, self.decisions), slice(first, first + many)
            acts = self.act(contexts[part], available[part])
            wrong = np.flatnonzero(acts.arms != arms[part])
            if not wrong.size:
                made.append(acts)
                first, many = first + len(acts.arms), 2 * many
                continue
            self._state, self.decisions = before
            many = max(1, wrong[0])
            if wrong[0] == 0:
                only = np.zeros_like(available[first : first + 1])
                only[0, arms[first]] = True
                made.append(self.act(contexts[first : first + 1], only))
                different.append(first)
                first += 1
        return joined(made), different

    def _parts(self, available: np.ndarray) -> Iterator[slice]:
        """Rows for one call: not too many, and of one mask where they share probabilities."""
        ends = set(range(0, len(available), TOGETHER)) | {len(available)}
        if self._programs.still:
            ends |= set(np.flatnonzero(np.any(available[1:] != available[:-1], axis=1)) + 1)
        return (slice(first, last) for first, last in pairwise(sorted(ends)))

    def _act(self, contexts: np.ndarray, available: np.ndarray) -> Acts:
        count = len(contexts)
        self._contexts[:count], self._available[:count] = contexts, available
        state, finite, *rows = self._programs.act(
            self._state, np.int32(self.decisions), np.int32(count), self._words,
            self._contexts, self._available,
        )  # fmt: skip
        if not finite:
            raise DivergenceError(
                f"{self._text} cannot decide here: its probabilities are not numbers"
            )
        self._state = state
        self.decisions += count
        return Acts(*(np.asarray(leaf)[:count] for leaf in rows))

    def learn(self, tickets: np.ndarray, rewards: np.ndarray, whole: bool = False) -> list[int]:
        """Learns the reward of each row of tickets; gives the places of those that it refuses.

        With `whole`, it learns nothing if it refuses one.
        """
        before, refused = self._state, list[int]()
        for first in range(0, len(rewards), TOGETHER):
            part = slice(first, first + TOGETHER)
            if not self._learn(tickets[part], rewards[part]):
                places = range(first, first + len(rewards[part]))
                refused += [i for i in places if not self._learn(tickets[[i]], rewards[[i]])]
        if refused and whole:
            self._state = before
        return refused

    def _learn(self, tickets: np.ndarray, rewards: np.ndarray) -> bool:
        """Whether it did: all of them, or none."""
        count = len(rewards)
        self._tickets[:count], self._rewards[:count] = tickets, rewards
        state, finite = self._programs.learn(
            self._state, np.int32(count), self._tickets, self._rewards
        )
        if not finite:  # which also waits: the next call writes into the arrays of this one
            return False
        self._state = state
        return True

    def warm_up(self) -> None:
        """Runs both programs for no decision and no reward, on a copy."""
        none, state = np.int32(0), on_device(self._state)
        state = self._programs.act(
            state, none, none, self._words, self._contexts, self._available
        )[0]  # fmt: skip
        self._programs.learn(state, none, self._tickets, self._rewards)

    def grow(self, num_arms: int, tickets: np.ndarray) -> np.ndarray:
        """More arms, which start from the prior; gives the open tickets in their new shape."""
        arms, state, layout = self.spec.num_arms, self._state, self._programs.ticket
        self._shape(self.spec._replace(num_arms=num_arms))
        self._state = on_device(grown(state, self._fresh(), arms, num_arms - arms))
        return rows_grown(tickets, layout, self._programs.ticket, arms, num_arms - arms)

    def state(self) -> dict[str, np.ndarray]:
        """Every array of the state, by its path."""
        leaves, _ = jax.tree_util.tree_flatten_with_path(self._state)
        return {jax.tree_util.keystr(path): np.array(leaf) for path, leaf in leaves}

    def set_state(self, arrays: dict[str, np.ndarray], decisions: int) -> None:
        """Goes on from a state; one of other names or shapes is refused with a ValueError."""
        leaves, shape = jax.tree_util.tree_flatten_with_path(self._state)
        wanted = {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}
        given = {name: (array.shape, array.dtype) for name, array in arrays.items()}
        if given != wanted:
            raise ValueError("a state of another shape")
        state = jax.tree.unflatten(shape, [arrays[name] for name in wanted])
        self._state, self.decisions = on_device(state), decisions


def on_device(state: PyTree) -> State:
    """Copies of our own."""
    with jax.default_device(agents_device()):
        return bound(jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), state))


def bound(state: State) -> State:
    """Programs that are given this state run on the agents' device, without being told so."""
    return jax.device_put(state, agents_device())
