"""A policy with a memory: it acts and learns, a few decisions at a time, one after the other.

The keys are those of a simulation's first run, so that an agent with its seed decides as the
simulation does. Whatever would leave a memory that the policy cannot use is refused, and changes
nothing.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandits import check
from driftbandits.agents.growth import grown, rows_grown
from driftbandits.agents.packed_tickets import WORD, Layout
from driftbandits.agents.programs import REFUSED, TOGETHER, programs_for
from driftbandits.core import BanditSpec, PyTree, State
from driftbandits.numerics.random_keys import key
from driftbandits.policies import build_policy
from driftbandits.simulation.devices import agents_device
from driftbandits.simulation.engine import block_keys

REHEARSED = 16  # decisions that show whether a state makes sense


class DivergenceError(ArithmeticError):
    """The policy cannot decide: its probabilities, or its memory, would not be finite numbers."""


class Acts(NamedTuple):
    """What was decided, in order."""

    arms: np.ndarray  # (n,) int32
    probabilities: np.ndarray  # (n, num_arms) float32
    tickets: np.ndarray  # (n, words) uint32


class Checkpoint(NamedTuple):
    """A memory to go back to."""

    state: State
    decisions: int


def joined(parts: list[Acts]) -> Acts:
    return parts[0] if len(parts) == 1 else Acts(*map(np.concatenate, zip(*parts, strict=True)))


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
    def shares_probabilities(self) -> bool:
        """Whether decisions have the same ones until a reward comes, if the same arms are there."""
        return self._programs.still

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
        """Decides for each row of contexts and of available arms.

        All of them or, with DivergenceError, none.
        """
        if len(available) == 1:  # most come alone
            return self._act(contexts, available)
        slices = list(self._parts(available))
        before = self.checkpoint() if len(slices) > 1 else None
        try:
            return joined([self._act(contexts[part], available[part]) for part in slices])
        except DivergenceError:
            if before:
                self.go_back(before)
            raise

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self._programs.copy(self._state), self.decisions)

    def go_back(self, checkpoint: Checkpoint) -> None:
        """Once; a further time needs a checkpoint of its own."""
        self._state, self.decisions = checkpoint

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
            before, part = self.checkpoint(), slice(first, first + many)
            acts = self.act(contexts[part], available[part])
            wrong = np.flatnonzero(acts.arms != arms[part])
            if not wrong.size:
                made.append(acts)
                first, many = first + len(acts.arms), 2 * many
                continue
            self.go_back(before)
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
        self._state, *rows = self._programs.act(
            self._state, np.int32(self.decisions), np.int32(count), self._words,
            self._contexts, self._available,
        )  # fmt: skip
        acts = Acts(*(np.asarray(leaf)[:count] for leaf in rows))
        if acts.arms[0] == REFUSED:
            raise DivergenceError(f"{self._text} cannot decide here: not all would be numbers")
        self.decisions += count
        return acts

    def learn(self, tickets: np.ndarray, rewards: np.ndarray, whole: bool = False) -> list[int]:
        """Learns the reward of each row of tickets; gives the places of those that it refuses.

        With `whole`, it learns nothing if it refuses one.
        """
        before = self.checkpoint() if whole and len(rewards) > 1 else None
        refused: list[int] = []
        for first in range(0, len(rewards), TOGETHER):
            part = slice(first, first + TOGETHER)
            if not self._learn(tickets[part], rewards[part]):
                places = range(first, first + len(rewards[part]))
                refused += [i for i in places if not self._learn(tickets[[i]], rewards[[i]])]
        if refused and before:
            self.go_back(before)
        return refused

    def _learn(self, tickets: np.ndarray, rewards: np.ndarray) -> bool:
        """Whether it did: all of them, or none."""
        count = len(rewards)
        self._tickets[:count], self._rewards[:count] = tickets, rewards
        self._state, learned = self._programs.learn(
            self._state, np.int32(count), self._tickets, self._rewards
        )
        # Also waits: the next call writes into the arrays of this one.
        return bool(np.asarray(learned))

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
        state, learned = self._programs.learn(state, count, np.asarray(tickets), rewards)
        if not learned:
            raise DivergenceError(f"{self._text} cannot learn with this memory")
        return np.asarray(probabilities)[:REHEARSED], arrays_by_path(state)

    def grow(self, num_arms: int) -> Callable[[np.ndarray], np.ndarray]:
        """More arms, which start from the prior; gives what brings tickets into their new shape."""
        arms, state, layout = self.spec.num_arms, self._state, self._programs.ticket
        self._shape(self.spec._replace(num_arms=num_arms))
        self._state = on_device(grown(state, self._fresh(), arms, num_arms - arms))
        more, after = num_arms - arms, self._programs.ticket
        return lambda tickets: rows_grown(tickets, layout, after, arms, more)

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


def ticket_layout(policy: str, spec: BanditSpec) -> Layout:
    return programs_for(build_policy(policy, spec), spec).ticket


def on_device(state: PyTree) -> State:
    """Copies of our own: a program gives the memory of its state to the next one."""
    with jax.default_device(agents_device()):
        return bound(jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), state))


def bound(state: State) -> State:
    """Programs that are given this state run on the agents' device, without being told so."""
    return jax.device_put(state, agents_device())
