"""A policy with a memory: it acts and learns, a few decisions at a time, one after the other.

The keys are those of a simulation's first run, so that an agent with its seed decides as the
simulation does. Whatever would leave a memory that the policy cannot use is refused, and changes
nothing.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandits import check
from driftbandits.agents.call_buffers import CallBuffers
from driftbandits.agents.growth import grown, rows_grown
from driftbandits.agents.packed_state import Parts, with_new
from driftbandits.agents.packed_tickets import Layout
from driftbandits.agents.probabilities import DeferredProbabilities, Probabilities
from driftbandits.agents.programs import (
    FEW,
    REFUSED,
    USUAL,
    Loops,
    Programs,
    blank_state,
    programs_for,
)
from driftbandits.agents.soundness import sum_to_one
from driftbandits.core import BanditSpec, State
from driftbandits.numerics.made_again import Made
from driftbandits.policies import build_policy
from driftbandits.simulation.cache_folder import Cache, cache_folder
from driftbandits.simulation.devices import agents_device
from driftbandits.simulation.engine import POLICY_START, POLICY_STEPS, block_words

DEFERRED_BYTES = 1024  # of a state that may wait for somebody to read its probabilities
REHEARSED = 16  # decisions that show whether a state makes sense


class DivergenceError(ArithmeticError):
    """The policy cannot decide: its probabilities, or its memory, would not be finite numbers."""


class Acts(NamedTuple):
    """What was decided, in order."""

    arms: np.ndarray  # (n,) int32
    probabilities: np.ndarray  # (n, num_arms) float32
    tickets: np.ndarray  # (n, words) uint32


class Act(NamedTuple):
    """One decision."""

    arm: int
    probabilities: Probabilities  # (num_arms,) float32
    ticket: np.ndarray  # (words,) uint32


class Checkpoint(NamedTuple):
    """A state to go back to."""

    parts: Parts
    decisions: int
    slots: int  # for arms


def joined(parts: list[Acts]) -> Acts:
    return parts[0] if len(parts) == 1 else Acts(*map(np.concatenate, zip(*parts, strict=True)))


def part_of(made: Made | None, part: slice) -> Any:
    return made and Made(made.arm[part], made.probability[part])


def padded(made: Made, length: int) -> Made:
    """Rows, padded for one call of a program."""
    missing = length - len(made.arm)
    return Made(np.pad(made.arm, (0, missing)), np.pad(made.probability, (0, missing)))


class Learner:
    """A policy's state, moved forward by decisions and rewards."""

    def __init__(
        self, policy: str, spec: BanditSpec, seed: int, cache: Cache | None = None
    ) -> None:
        """Makes a fresh learner; `cache` chooses the folder of compiled programs."""
        words = block_words(seed, 1, 0)
        self._text, self._folder = policy, cache_folder(cache)
        self._start, self._words = words[0, POLICY_START], words[0, POLICY_STEPS]
        self.decisions = 0
        self._shape(spec)
        self._parts = self._fresh()  # never changed, but replaced

    def _shape(self, spec: BanditSpec) -> None:
        if build_policy(self._text, spec).sees_means:
            check.fail("policy", "one that does not need the true means", self._text)
        self.spec, self._programs = spec, programs_for(self._text, spec, self._folder)
        self._buffers = self._new_buffers(self._programs.few)
        self._buffers_for_many: CallBuffers | None = None
        self._batches_are_large = False
        self._no_features = no_features(spec)
        self._probabilities = partial(state_probabilities, self._programs, self._text)
        self._last_deferred: DeferredProbabilities | None = None
        nothing = np.zeros(0)
        self._last_shared: tuple[Parts, np.ndarray, np.ndarray] = (), nothing, nothing

    def _new_buffers(self, loops: Loops) -> CallBuffers:
        return CallBuffers(self._programs, loops, self._words)

    @property
    def ticket_width(self) -> int:
        return self._programs.ticket.width

    @property
    def shares_probabilities(self) -> bool:
        """Whether probabilities stay the same until the next reward, for the same arms."""
        return self._programs.still

    @property
    def state_bytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    @property
    def ticket_layout(self) -> Layout:
        return self._programs.ticket

    def _fresh(self) -> Parts:
        with jax.default_device(agents_device()):
            return bound(self._programs.init(self._start))

    def act(
        self,
        contexts: np.ndarray,
        available: np.ndarray,
        made: Made | None = None,
        arms: np.ndarray | None = None,
    ) -> Acts:
        """Decides for each row of contexts and of available arms, or makes those again.

        `arms` are the features of the arms, (num_arms, arm_dim). All of them or, with
        DivergenceError, none.
        """
        before, rows = self.checkpoint(), self._programs.few.rows
        given = self._buffers if made else self._buffers_for(len(available), rows)
        try:
            return joined(
                [
                    self._act(given, contexts[part], available[part], part_of(made, part), arms)
                    for part in self._calls(available, given.loops.rows)
                ]
            )
        except DivergenceError:
            self.go_back(before)
            raise

    def act_once(
        self,
        context: np.ndarray,
        available: np.ndarray,
        count: int,
        arms: np.ndarray | None = None,
    ) -> Act:
        """Decides once, with probabilities of the first `count` arms; other slots are spare.

        Where deciding changes nothing, they are computed when they are read.
        """
        if self._programs.still and self._programs.state.nbytes > DEFERRED_BYTES:
            acts = self._act(self._buffers, context[None], available[None], None, None)
            return Act(int(acts.arms[0]), acts.probabilities[0, :count].copy(), acts.tickets[0])
        before, given = self._parts, self._buffers
        given.to_act[0], given.to_act[1] = self.decisions, 1
        if self.spec.context_dim:
            given.contexts[0] = context
        given.available[0] = available
        new, table, laws = given.loops.act(before, given.to_act, None, self._features(arms))
        row = np.asarray(table)[0].copy()
        arm = row[0].item()
        if arm >= len(available):  # REFUSED, as a word
            raise DivergenceError(cannot_decide(self._text))
        self._parts = with_new(before, self._programs.new_by_act, new)
        self.decisions += 1
        if laws:
            return Act(arm, np.asarray(laws[0])[0, :count].copy(), row[1:])
        return Act(arm, self._deferred(before, available, count), row[1:])

    def _deferred(self, parts: Parts, available: np.ndarray, arms: int) -> DeferredProbabilities:
        """Deferred probabilities, the same object until the next reward with the same arms."""
        last = self._last_deferred
        if last is None or not last.are_those_of(parts, available, arms):
            last = DeferredProbabilities(self._probabilities, parts, available.copy(), arms)
            self._last_deferred = last
        return last

    def _features(self, arms: np.ndarray | None) -> np.ndarray | None:
        """The features of the arms as a program takes them: zeros if they are not known."""
        known = arms is not None and self.spec.arm_dim > 0
        return arms if known else self._no_features

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self._parts, self.decisions, self.spec.num_arms)

    def go_back(self, checkpoint: Checkpoint) -> None:
        """Restores a state; if slots were added since, it has them."""
        slots = self.spec.num_arms
        if slots != checkpoint.slots:
            self._shape(self.spec._replace(num_arms=checkpoint.slots))
        self._parts, self.decisions = checkpoint.parts, checkpoint.decisions
        if slots != checkpoint.slots:
            self.grow(slots)

    def act_again(
        self,
        contexts: np.ndarray,
        available: np.ndarray,
        made: Made,
        arms: np.ndarray | None = None,
    ) -> tuple[Acts, list[int]]:
        """Repeats known decisions; returns the places where it would choose another arm.

        There its draw is taken to have come out as the known arm (`made_again`).
        """
        parts: list[Acts] = []
        different: list[int] = []
        first, many = 0, len(available)
        while first < len(available):
            before, part = self.checkpoint(), slice(first, first + many)
            known = part_of(made, part)
            acts = self.act(contexts[part], available[part], arms=arms)
            others = acts.arms != known.arm
            wrong = np.flatnonzero(others | self._weighs_otherwise(acts, known))
            if wrong.size:
                self.go_back(before)
                if wrong[0] > 0:  # up to there it is right
                    many = wrong[0].item()
                    continue
                many = many if self._programs.weighs else 1
                part = slice(first, first + many)
                acts = self.act(contexts[part], available[part], part_of(made, part), arms)
                different += (first + np.flatnonzero(others[:many])).tolist()
            parts.append(acts)
            first, many = first + len(acts.arms), 2 * many
        return joined(parts), different

    def _weighs_otherwise(self, acts: Acts, made: Made) -> np.ndarray:
        """Where a reward would be divided by a probability other than that of the known draw."""
        if not self._programs.weighs:
            return np.zeros(len(acts.arms), bool)
        own = acts.probabilities[np.arange(len(acts.arms)), made.arm]
        return own != made.probability

    def _buffers_for(self, count: int, rows: int) -> CallBuffers:
        """The buffers for a batch of which a call for few takes so many rows."""
        programs = self._programs
        if count <= rows or rows >= FEW:
            return self._buffers
        self._batches_are_large = True
        if not programs.many_is_ready.is_set():
            return self._buffers
        if self._buffers_for_many is None:
            self._buffers_for_many = self._new_buffers(programs.many)
        return self._buffers_for_many

    def _calls(self, available: np.ndarray, rows: int) -> Iterator[slice]:
        """Splits rows into calls: not too many, and one mask where they share probabilities."""
        ends = set(range(0, len(available), rows)) | {len(available)}
        if self._programs.still and (available != available[0]).any():
            ends |= set(np.flatnonzero(np.any(available[1:] != available[:-1], axis=1)) + 1)
        return (slice(first, last) for first, last in pairwise(sorted(ends)))

    def _act(
        self,
        given: CallBuffers,
        contexts: np.ndarray,
        available: np.ndarray,
        made: Made | None,
        arms: np.ndarray | None,
    ) -> Acts:
        shared = self._shared_probabilities(available[0]) if self._programs.still else None
        rows, laws = self._decided(given, contexts, available, made, arms)
        if laws is None:
            assert shared is not None
            laws = np.broadcast_to(shared, (len(rows), len(shared)))
        return Acts(rows[:, 0].view(np.int32), laws, rows[:, 1:])

    def _shared_probabilities(self, available: np.ndarray) -> np.ndarray:
        """Probabilities of all decisions until the next reward, with the same arms available."""
        parts, mask, known = self._last_shared
        if parts is not self._parts or not np.array_equal(mask, available):
            known = self._probabilities(self._parts, available)
            self._last_shared = self._parts, available.copy(), known
        return known

    def _decided(
        self,
        given: CallBuffers,
        contexts: np.ndarray,
        available: np.ndarray,
        made: Made | None,
        arms: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns arms and tickets, and probabilities if they are not those of the state."""
        count = len(available)
        given.to_act[:2] = self.decisions, count
        if self.spec.context_dim:
            given.contexts[:count] = contexts
        given.available[:count] = available[:1] if self._programs.still else available
        again = made and padded(made, given.loops.rows)
        features = self._features(arms)
        new, table, laws = given.loops.act(self._parts, given.to_act, again, features)
        rows: np.ndarray = np.asarray(table)[:count]
        if laws and (rows[:, 0].view(np.int32) == REFUSED).any():
            raise DivergenceError(cannot_decide(self._text))
        self._parts = with_new(self._parts, self._programs.new_by_act, new)
        self.decisions += count
        return rows, np.asarray(laws[0])[:count] if laws else None

    def learn(self, tickets: np.ndarray, rewards: np.ndarray, whole: bool = False) -> list[int]:
        """Learns the reward of each row of tickets; returns the places of refused ones.

        With `whole`, it learns nothing if it refuses one.
        """
        before = self.checkpoint()
        refused: list[int] = []
        given = self._buffers_for(len(rewards), self._programs.few.rewarded.rows)
        rows = given.loops.rewarded.rows
        for first in range(0, len(rewards), rows):
            part = slice(first, first + rows)
            given.set_rewards(rewards[part], tickets[part])
            if not self._learn_from(given):
                places = range(first, first + len(rewards[part]))
                refused += [i for i in places if not self.learn_once(tickets[i], rewards[i])]
        if refused and whole:
            self.go_back(before)
        return refused

    def learn_once(self, ticket: np.ndarray, reward: float) -> bool:
        """Learns one reward; returns whether it did, or refused it."""
        self._buffers.set_reward(reward, ticket)
        return self._learn_from(self._buffers)

    def _learn_from(self, given: CallBuffers) -> bool:
        """Learns what is in the buffers: all or none."""
        new, size = given.loops.learn(self._parts, given.to_learn)
        largest = np.asarray(size).item()  # float(size) takes longer than many a program
        parts = with_new(self._parts, self._programs.new_by_learn, new)
        if largest > USUAL and not self._is_usable(parts, largest):
            return False
        self._parts = parts
        return True

    def _is_usable(self, parts: Parts, largest: float) -> bool:
        """Whether the policy can decide with a state, which finite numbers alone do not ensure."""
        if not np.isfinite(largest):
            return False
        everyone = np.ones(self.spec.num_arms, bool)
        if self._programs.still:
            return sum_to_one(np.asarray(self._programs.probabilities(parts, everyone)))
        if not self.spec.context_dim and not self.spec.arm_dim:
            return True
        programs = self._programs
        given = CallBuffers(programs, programs.few, np.zeros_like(self._words))
        given.to_act[1] = 1
        given.available[0] = everyone
        _, table, _ = given.loops.act(parts, given.to_act, None, self._features(None))
        return bool(np.asarray(table)[:1, 0].view(np.int32)[0] != REFUSED)

    def warm_up(self) -> None:
        """Compiles what every agent needs."""
        run_empty(self._buffers, self._parts, self._features(None))
        if self._programs.still:
            self._programs.probabilities(self._parts, np.ones(self.spec.num_arms, bool))

    @property
    def lacks_programs(self) -> bool:
        """Whether there were large batches, whose programs are not compiled."""
        return self._batches_are_large and not self._programs.many_is_ready.is_set()

    def compile_for_many(self) -> None:
        """Compiles what makes large batches quicker; another thread may decide meanwhile."""
        programs = self._programs
        given = CallBuffers(programs, programs.many, self._words)
        with jax.default_device(agents_device()):
            fresh = bound(programs.init(self._start))
        run_empty(given, fresh, no_features(programs.spec))
        programs.many_is_ready.set()

    def rehearse(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Tries a few decisions and rewards, returns what came of them, and goes back."""
        before, dim = self.checkpoint(), self.spec.context_dim
        shape = (REHEARSED, self.spec.num_arms)
        acts = self.act(np.zeros((REHEARSED, dim), np.float32), np.ones(shape, bool))
        rewards = np.resize(np.array(self.spec.reward_range, np.float32), REHEARSED)
        if self.learn(acts.tickets, rewards, whole=True):
            raise DivergenceError(f"{self._text} cannot learn with this memory")
        after = self.state()
        self.go_back(before)
        return acts.probabilities, after

    def grow(self, num_arms: int) -> Callable[[np.ndarray], np.ndarray]:
        """Adds arms, which start from the prior; returns what reshapes tickets."""
        arms, state, layout = self.spec.num_arms, self._on_host(), self._programs.ticket
        self._shape(self.spec._replace(num_arms=num_arms))
        self._parts = self._fresh()
        self._set(grown(state, self._on_host(), arms, num_arms - arms))
        more, after = num_arms - arms, self._programs.ticket
        return lambda tickets: rows_grown(tickets, layout, after, arms, more)

    def state(self) -> dict[str, np.ndarray]:
        """All arrays of the state, by path."""
        return arrays_by_path(self._on_host())

    def set_state(self, arrays: dict[str, np.ndarray], decisions: int) -> None:
        """Continues from a state; one with other names or shapes is a ValueError."""
        wanted = shapes_by_path(self._programs.state.blank)
        if state_shapes(arrays) != wanted:
            raise ValueError("a state of another shape")
        structure = jax.tree.structure(self._programs.state.blank)
        self._set(jax.tree.unflatten(structure, [arrays[name] for name in wanted]))
        self.decisions = decisions

    def _on_host(self) -> State:
        return self._programs.state.on_host(self._parts)

    def _set(self, state: State) -> None:
        parts = self._programs.state.from_host(state)
        self._parts = jax.device_put(parts, agents_device(), may_alias=False)


def no_features(spec: BanditSpec) -> np.ndarray | None:
    """The features of the arms as a program takes them, where they are not known."""
    return np.zeros((spec.num_arms, spec.arm_dim), np.float32) if spec.arm_dim else None


def run_empty(given: CallBuffers, parts: Parts, features: np.ndarray | None) -> None:
    """Runs the loops without decisions and rewards."""
    given.to_act[1] = given.rewarded[0] = 0
    given.loops.act(parts, given.to_act, None, features)
    given.loops.learn(parts, given.to_learn)


def state_probabilities(
    programs: Programs, policy: str, parts: Parts, available: np.ndarray
) -> np.ndarray:
    """The probabilities of a state in which deciding changes nothing."""
    found: np.ndarray = np.asarray(programs.probabilities(parts, available))
    if not sum_to_one(found):
        raise DivergenceError(cannot_decide(policy))
    return found


def cannot_decide(policy: str) -> str:
    return f"{policy} cannot decide here: not all would be numbers"


def arrays_by_path(state: State) -> dict[str, np.ndarray]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


Shapes = dict[str, tuple[tuple[int, ...], np.dtype]]  # of the arrays of a state, by their paths


def shapes_by_path(state: State) -> Shapes:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}


def state_shapes(arrays: dict[str, np.ndarray]) -> Shapes:
    return {path: (array.shape, array.dtype) for path, array in arrays.items()}


def wanted_shapes(policy: str, spec: BanditSpec) -> Shapes:
    """Shapes of a policy's state, found without making one."""
    return shapes_by_path(blank_state(build_policy(policy, spec)))


def ticket_layout(policy: str, spec: BanditSpec) -> Layout:
    return programs_for(policy, spec, cache_folder()).ticket


def bound(parts: Parts) -> Parts:
    """Binds a state to the agents' device, on which programs then run."""
    return jax.device_put(parts, agents_device())
