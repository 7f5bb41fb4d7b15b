"""The engine: simulates a policy in an environment, over many steps and many runs.

Runs are computed in blocks, whose width depends on the policy alone, never on the machine. A block
is one XLA program on one core: a loop over time around a vmap over the block's runs, which advances
a chunk of steps per call. Every run has its own random keys, made from the seed and the index of
the run, and the environment's keys are separate from the policy's. So the same seed gives the same
numbers for any number of cores, chunks and runs, and all policies meet the same worlds.
"""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Policy, State
from driftbandits.environments import build_environment
from driftbandits.numerics.random_keys import any_key, key_of, run_words, with_key, without_key
from driftbandits.policies import build_policy, checked
from driftbandits.simulation import compiling
from driftbandits.simulation.arguments import Template, template_of
from driftbandits.simulation.cache_folder import cache_folder
from driftbandits.simulation.delays import add_waiting, learn_due, nothing_waiting
from driftbandits.simulation.devices import device, own_device
from driftbandits.simulation.kept_programs import Kept, find, keep
from driftbandits.simulation.program_names import Name, block_name, shared_name
from driftbandits.simulation.threads import Stopped, call_on_threads
from driftbandits.simulation.traces import (
    Record,
    Trace,
    add_up,
    cut,
    join,
    pick,
    record_step,
    refuse_broken,
)

POINTS = 1000  # how many times a run is recorded by default
CHUNK = 125  # times the runs of a block: steps between two reports of progress, at the most
BLOCK_BYTES = 4 * 2**20  # the states of one block should stay in a core's cache
KEYS = 6  # of each run
KNOWN = 64  # programs that are ready, though nobody may need them again
POLICY_START, POLICY_STEPS = 1, 4  # which of them an agent needs
NARROWEST, WIDEST = 4, 100  # a wide block shares what its kernels cost beside the arithmetic


class Keys(NamedTuple):
    """The random keys of a run."""

    world_start: Key
    policy_start: Key
    steps: Key  # (3,), of what is observed, of the rewards and of the policy
    delays: Key


ProgressCallback = Callable[[int, int], None]


def simulate(
    policy: Policy | str,
    environment: Environment | str,
    *,
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    record_every: int | None = None,
    chunk: int | None = None,
    cores: int | None = None,
    progress: ProgressCallback | None = None,
) -> Trace:
    """Simulates one policy in one environment.

    The first call compiles the policy and the environment into one program; later calls with the
    same shapes reuse it. The same seed gives the same worlds to every policy.

    Args:
        policy: A policy, or its name with settings, such as `"tracker(width=2)"`.
        environment: An environment, or its name with settings, such as
            `"sinusoidal(max_consecutive=10)"`.
        horizon: The number of pulls per run.
        runs: The number of independent repetitions. Adding more does not change the first ones.
        seed: The random seed.
        record_every: The number of steps between recorded times. None records about a thousand
            times. Memory grows with `horizon / record_every`.
        chunk: About how many steps lie between two calls of `progress`. None calls it at least ten
            times.
        cores: The number of cores to use. None uses all; the numbers do not depend on it.
        progress: A function that is called with the number of steps done and the number in total,
            over all blocks of runs.

    Returns:
        The rewards, regrets and pulls of every run, at the recorded times.

    Raises:
        InputError: If an argument is invalid, if the environment offers no arm or a reward that is
            not finite, or if the policy diverges.

    Example:
        ```python
        from driftbandits import simulate

        trace = simulate("ucb", "sinusoidal(period=100)", horizon=200, runs=4)
        print(trace.regret[:, -1].mean())
        ```
    """
    check.integer(horizon=horizon, runs=runs)
    check.integer(seed=seed, at_least=0)
    given = policy, environment
    if isinstance(environment, str):
        environment = build_environment(environment)
    if isinstance(policy, str):
        policy = build_policy(policy, environment.spec._replace(horizon=horizon))
    else:
        checked(policy)
    name = block_name(*given, horizon, record_every, chunk)
    program = program_for(policy, environment, horizon, record_every, chunk, name)
    first_runs = range(0, runs, program.width)
    moved = count_steps(horizon * len(first_runs), progress or ignore)
    run = own_device()(run_block)
    calls = (partial(run, program, seed, first_run, moved) for first_run in first_runs)
    blocks = dict(call_on_threads(calls, cores))
    return cut(join([block for _, block in sorted(blocks.items())]), runs)


def ignore(done: int, total: int) -> None:
    """Ignores progress."""


def count_steps(total: int, progress: ProgressCallback) -> Callable[[int], None]:
    """A thread-safe counter of the steps done by all blocks."""
    lock, done = threading.Lock(), 0

    def moved(steps: int) -> None:
        nonlocal done
        with lock:
            done += steps
            progress(done, total)

    moved(0)
    return moved


Arrays = tuple[Array, ...]  # a block's states, in one row: what is kept knows no other structure


class Shape(NamedTuple):
    """The shape of a block and of its records."""

    width: int  # runs
    every: int  # steps between recorded times
    points: int  # recorded times of one call at the most


class Steps:
    """The compiled steps of a block, for any numbers in its policy and environment.

    They are compiled once, unless a cached program was found (`kept`), and loaded by every device
    that needs them.
    """

    def __init__(
        self,
        template: Template,
        shape: Shape,
        kept: Kept | None = None,
        name: Name | None = None,
    ) -> None:
        self._template, self._shape, self._kept, self._name = template, shape, kept, name
        self._traced: jax.stages.Traced | None = None
        if kept:
            self._states = kept.facts["states"]
        else:
            self._trace()
        self._compiled: dict[jax.Device | None, jax.stages.Compiled] = {}
        self._lock = threading.Lock()

    def nothing(self) -> tuple[np.ndarray, ...]:
        """Placeholders for the states before the first step."""
        return tuple(np.zeros(shape, dtype) for shape, dtype in self._states)

    def compiled(self) -> jax.stages.Compiled:
        """The program for this thread's device; other threads wait for the first to compile it."""
        here = device()
        with self._lock:
            if here not in self._compiled:
                self._compiled[here] = self._load(here) or self._compile()
            return self._compiled[here]

    def _load(self, here: jax.Device | None) -> jax.stages.Compiled | None:
        programs = self._kept and self._kept.on(here or jax.devices()[0])
        return programs[0] if programs else None

    def _trace(self) -> jax.stages.Traced:
        proceed, states = block_functions(self._template, self._shape)
        words = jax.ShapeDtypeStruct((self._shape.width, KEYS, 2), np.uint32)
        numbers = jax.eval_shape(tuple, self._template.numbers)
        blank = jax.eval_shape(states, numbers, words)
        self._states = [[leaf.shape, leaf.dtype.name] for leaf in blank]
        self._traced = proceed.trace(numbers, blank, words, 0, 0)
        return self._traced

    def _compile(self) -> jax.stages.Compiled:
        traced, self._traced = self._traced or self._trace(), None
        made = compiling.compile_all([traced.lower()])
        facts = {"width": self._shape.width, "states": self._states}
        self._kept = keep(cache_folder(), self._name, facts, made)
        return made.programs[0]


class Program:
    """One policy in one environment; programs that differ only in numbers share their steps."""

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        horizon: int,
        record_every: int | None,
        chunk: int | None,
        name: Name | None,
    ) -> None:
        self.horizon = horizon
        every = -(-horizon // POINTS) if record_every is None else record_every
        self._template = template_of((policy, environment))
        self.numbers = tuple(self._template.numbers)
        self._name = name and (shared_name(self._template, horizon, every, chunk) or name)
        self._kept = find(cache_folder(), self._name)
        self.width = self._kept.facts["width"] if self._kept else block_width(policy)
        chunk = min(CHUNK * self.width, -(-horizon // 10)) if chunk is None else chunk
        check.integer(record_every=every, chunk=chunk)
        self.shape = Shape(self.width, every, max(1, chunk // every))

    def compiled(self) -> jax.stages.Compiled:
        return self.steps().compiled()

    def steps(self) -> Steps:
        known = self._template, self.shape
        with _tracing:  # two threads that both missed the cache would have steps each
            if known not in _steps:
                _steps[known] = Steps(*known, self._kept, self._name)
                while len(_steps) > KNOWN:
                    del _steps[next(iter(_steps))]
            return _steps[known]


_tracing = threading.Lock()
_steps: dict[tuple[Template, Shape], Steps] = {}


@lru_cache(maxsize=KNOWN)
def program_for(
    policy: Policy,
    environment: Environment,
    horizon: int,
    record_every: int | None = None,
    chunk: int | None = None,
    name: Name | None = None,
) -> Program:
    """The program of a policy in an environment; the same arguments give the same object."""
    return Program(policy, environment, horizon, record_every, chunk, name)


def block_words(seed: int, width: int, first_run: int) -> np.ndarray:
    """Random words for the keys of a block's runs: (width, KEYS, 2) uint32.

    The words of a run depend on nothing but the seed and the index of the run.
    """
    return run_words(seed, first_run + np.arange(width), KEYS)


def keys_of(words: Array | np.ndarray) -> Keys:
    return Keys(*map(key_of, (words[:, 0], words[:, 1], words[:, 2:5], words[:, 5])))


def block_keys(seed: int, width: int, first_run: int) -> Keys:
    return keys_of(block_words(seed, width, first_run))


def block_width(policy: Policy) -> int:
    """Runs per block: few for a policy with a large state, so that it stays in cache."""
    state = jax.eval_shape(policy.init, any_key())
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    fitting = max(BLOCK_BYTES // max(size, 1), 1)
    return min(max(1 << (fitting.bit_length() - 1), NARROWEST), WIDEST)


def block_functions(
    template: Template, shape: Shape
) -> tuple[jax.stages.Wrapped, Callable[..., Arrays]]:
    """The function that advances a block by up to `points` recorded times, and its start states.

    The number of steps is an argument of the compiled loop, so that XLA does not specialise a step
    on it. The start of a block is part of the same program, because each program costs time.
    """

    def start(numbers: Arrays, words: Array) -> State:
        policy, environment = template.with_numbers(numbers)
        return jax.vmap(partial(start_run, policy, environment))(keys_of(words))

    def states(numbers: Arrays, words: Array) -> Arrays:
        return tuple(without_key(leaf) for leaf in jax.tree.leaves(start(numbers, words)))

    def proceed(
        numbers: Arrays, arrays: Arrays, words: Array, first: Array, last: Array
    ) -> tuple[Arrays, Arrays]:
        keys = keys_of(words)
        policy, environment = template.with_numbers(numbers)
        # Traced once, though it is looked at several times below.
        step = jax.jit(jax.vmap(partial(take_step, policy, environment), (0, 0, None)), inline=True)

        def body(time: Array, carry: tuple[State, Record]) -> tuple[State, Record]:
            states, sums = carry
            states, record = step(states, keys, time)
            point = (time - first) // shape.every
            return states, jax.tree.map(lambda total, new: total.at[point].add(new), sums, record)

        def goes_on(words: Array) -> State:
            blank, structure = jax.tree.flatten(jax.eval_shape(start, numbers, words))
            pairs = zip(arrays, blank, strict=True)
            return jax.tree.unflatten(structure, [with_key(*pair) for pair in pairs])

        before = jax.lax.cond(first == 0, partial(start, numbers), goes_on, words)
        found = jax.eval_shape(step, before, keys, first)[1]
        sums = jax.tree.map(lambda x: jnp.zeros((shape.points, *x.shape), x.dtype), found)
        after, sums = jax.lax.fori_loop(first, last, body, (before, sums))
        return tuple(map(without_key, jax.tree.leaves(after))), tuple(sums)

    return compiling.jit(proceed, donate_argnums=1), states


def start_run(policy: Policy, environment: Environment, keys: Keys) -> State:
    """The environment's state, the policy's state and the pending rewards of a new run."""
    waiting = nothing_waiting(policy, environment, keys.policy_start)
    return environment.init(keys.world_start), policy.init(keys.policy_start), waiting


def take_step(
    policy: Policy, environment: Environment, states: State, keys: Keys, time: Array
) -> tuple[State, Record]:
    """One pull of one run."""
    world, policy_state, waiting = states
    step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys.steps, time)  # in one kernel
    observe_key, rewards_key, policy_key = step_keys
    observation = environment.observe(observe_key, world)
    rewards = environment.rewards(rewards_key, world, observation.context)
    shown = observation._replace(context=rewards.mean) if policy.sees_means else observation
    decision, policy_state = policy.act(policy_key, policy_state, shown)
    arm, reward = decision.arm, pick(rewards.sampled, decision.arm)
    if environment.delay is None:
        policy_state = policy.learn(policy_state, decision.ticket, reward)
    else:
        delay = environment.delay.draw(jax.random.fold_in(keys.delays, time))
        waiting = add_waiting(waiting, time, delay, decision.ticket, reward)
        policy_state, waiting = learn_due(policy, policy_state, waiting, time)
    after = environment.advance(world, arm)
    record = record_step(environment, world, after, rewards, observation.available, arm)
    return (after, policy_state, waiting), record


def run_block(
    program: Program, seed: int, first_run: int, moved: Callable[[int], None], stopped: Stopped
) -> Trace:
    """Simulates one block up to the horizon, on this thread."""
    steps, (_, every, points) = program.steps(), program.shape
    proceed, numbers = steps.compiled(), jax.device_put(program.numbers, device())
    words = block_words(seed, program.width, first_run)
    states, records = steps.nothing(), []
    for first in range(0, program.horizon, every * points):
        if stopped.is_set():
            raise CancelledError
        last = min(first + every * points, program.horizon)
        states, sums = proceed(numbers, states, words, first, last)
        record = Record(*jax.device_get(sums))
        refuse_broken(record, first_run)
        records.append(record)
        moved(last - first)
    return add_up(records, program.horizon, every)
