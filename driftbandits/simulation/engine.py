"""The engine: a policy in an environment, over many steps and many runs.

Runs go in blocks of a width that depends on the policy and on how many there are, never on the
machine. A block is
one XLA program on one core: a loop over time around a vmap over its runs, carried forward a chunk
of steps at a time. Every run has its own keys, made from the seed and its index, and the world's
keys are apart from the policy's. So the same seed gives the same numbers for any number of cores,
chunks and runs, and all policies meet the same worlds.
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
from driftbandits.numerics.random_keys import any_key, key_of, run_words
from driftbandits.policies import build_policy
from driftbandits.simulation import compiling
from driftbandits.simulation.cache_folder import cache_folder
from driftbandits.simulation.delays import add_waiting, learn_due, nothing_waiting
from driftbandits.simulation.devices import device, own_device
from driftbandits.simulation.kept_programs import find, keep
from driftbandits.simulation.program_names import Name, block_name
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
POLICY_START, POLICY_STEPS = 1, 4  # which of them an agent needs
NARROWEST, WIDEST = 4, 100  # a wide block shares what its kernels cost beside the arithmetic


class Keys(NamedTuple):
    """The sources of randomness of a run."""

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
    """Runs a policy in an environment.

    Args:
        policy: a policy, or its name with settings as in "recurrent(energy=0)".
        environment: an environment, or its name as in "sinusoidal(max_consecutive=10)".
        horizon: pulls per run.
        runs: independent repetitions; adding more does not change the first ones.
        seed: random seed.
        record_every: steps between recorded times; None keeps about a thousand times.
            Memory grows with horizon / record_every.
        chunk: steps between two calls of `progress`, about; None is at least ten calls.
        cores: how many to use; None is all of them. The numbers do not depend on it.
        progress: called with the steps done and the steps to do, over all blocks of runs.
    """
    check.integer(horizon=horizon, runs=runs)
    check.integer(seed=seed, at_least=0)
    given = policy, environment
    if isinstance(environment, str):
        environment = build_environment(environment)
    if isinstance(policy, str):
        policy = build_policy(policy, environment.spec._replace(horizon=horizon))
    most = wide_enough(runs)
    name = block_name(*given, horizon, record_every, chunk, most)
    program = program_for(policy, environment, horizon, record_every, chunk, most, name)
    first_runs = range(0, runs, program.width)
    moved = count_steps(horizon * len(first_runs), progress or ignore)
    run = own_device()(run_block)
    calls = (partial(run, program, seed, first_run, moved) for first_run in first_runs)
    blocks = dict(call_on_threads(calls, cores))
    return cut(join([block for _, block in sorted(blocks.items())]), runs)


def ignore(done: int, total: int) -> None:
    """No progress is reported."""


def count_steps(total: int, progress: ProgressCallback) -> Callable[[int], None]:
    """A counter that blocks on several threads may move."""
    lock, done = threading.Lock(), 0

    def moved(steps: int) -> None:
        nonlocal done
        with lock:
            done += steps
            progress(done, total)

    moved(0)
    return moved


Arrays = tuple[Array, ...]  # a block's states, in one row: what is kept knows no other structure


class CompiledBlock(NamedTuple):
    start: jax.stages.Compiled  # words to states
    proceed: jax.stages.Compiled  # states, words, first and last step to states and a record


class Program:
    """A policy in an environment, for one block.

    Compiled once, unless it was `kept` under its name, and loaded by every device that needs it.
    """

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        horizon: int,
        record_every: int | None,
        chunk: int | None,
        runs: int | None,
        name: Name | None,
    ) -> None:
        self.horizon = horizon
        self.every = -(-horizon // POINTS) if record_every is None else record_every
        self._name, self._kept = name, find(cache_folder(), name)
        self.width = self._kept.facts["width"] if self._kept else block_width(policy)
        if runs is not None and environment.spec.context_dim == 0:
            self.width = min(self.width, wide_enough(runs))
        chunk = min(CHUNK * self.width, -(-horizon // 10)) if chunk is None else chunk
        check.integer(record_every=self.every, chunk=chunk)
        points = max(1, chunk // self.every)
        self.steps = self.every * points  # how many one call of `proceed` takes at the most
        self._functions = block_functions(policy, environment, self.every, points)
        self._compiled: dict[jax.Device | None, CompiledBlock] = {}
        self._lock = threading.Lock()

    def compiled(self) -> CompiledBlock:
        """For this thread's device; others wait for the first one, and load what it compiled."""
        here = device()
        with self._lock:
            if here not in self._compiled:
                self._compiled[here] = self._load(here) or self._compile()
            return self._compiled[here]

    def _load(self, here: jax.Device | None) -> CompiledBlock | None:
        programs = self._kept and self._kept.on(here or jax.devices()[0])
        return CompiledBlock(*programs) if programs else None

    def _compile(self) -> CompiledBlock:
        start, proceed = self._functions
        words = jax.ShapeDtypeStruct((self.width, KEYS, 2), np.uint32)
        started = start.trace(words)
        lowered = started.lower(), proceed.lower(started.out_info, words, 0, 0)
        made = compiling.compile_all(lowered)
        self._kept = keep(cache_folder(), self._name, {"width": self.width}, made)
        return CompiledBlock(*made.programs)


@lru_cache(maxsize=64)
def program_for(
    policy: Policy,
    environment: Environment,
    horizon: int,
    record_every: int | None = None,
    chunk: int | None = None,
    runs: int | None = None,
    name: Name | None = None,
) -> Program:
    """The program of a policy in an environment; the same arguments give the same object.

    With `runs`, its blocks are no wider than so many need.
    """
    return Program(policy, environment, horizon, record_every, chunk, runs, name)


def block_words(seed: int, width: int, first_run: int) -> np.ndarray:
    """Random words for the keys of a block's runs: (width, KEYS, 2) uint32.

    A run's depend on the seed and its index alone.
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


def wide_enough(runs: int) -> int:
    """The width of a block for so few runs; one of few, so that a program serves several numbers.

    Only without a context: the order in which XLA adds up the products of linear algebra, and so
    the last bits of a run, may depend on the runs beside it.
    """
    return min(-(-runs // NARROWEST) * NARROWEST, WIDEST)


def block_functions(
    policy: Policy, environment: Environment, every: int, points: int
) -> tuple[jax.stages.Wrapped, jax.stages.Wrapped]:
    """What starts a block, and what carries it forward by up to `points` recorded times.

    The number of steps is an argument of the compiled loop, so that XLA does not shape the code
    of a step by it.
    """

    def init(keys: Keys) -> State:
        waiting = nothing_waiting(policy, environment, keys.policy_start)
        return environment.init(keys.world_start), policy.init(keys.policy_start), waiting

    # Traced once, though they are looked at several times below.
    init_all = jax.jit(jax.vmap(init), inline=True)
    step = jax.jit(jax.vmap(partial(take_step, policy, environment), (0, 0, None)), inline=True)

    def start(words: Array) -> Arrays:
        return tuple(jax.tree.leaves(init_all(keys_of(words))))

    def proceed(arrays: Arrays, words: Array, first: Array, last: Array) -> tuple[Arrays, Arrays]:
        keys = keys_of(words)
        states = jax.tree.unflatten(jax.tree.structure(jax.eval_shape(init_all, keys)), arrays)

        def body(time: Array, carry: tuple[State, Record]) -> tuple[State, Record]:
            states, sums = carry
            states, record = step(states, keys, time)
            point = (time - first) // every
            return states, jax.tree.map(lambda total, new: total.at[point].add(new), sums, record)

        shapes = jax.eval_shape(step, states, keys, first)[1]
        zeros = jax.tree.map(lambda leaf: jnp.zeros((points, *leaf.shape), leaf.dtype), shapes)
        states, sums = jax.lax.fori_loop(first, last, body, (states, zeros))
        return tuple(jax.tree.leaves(states)), tuple(sums)

    return compiling.jit(start), compiling.jit(proceed, donate_argnums=0)


def take_step(
    policy: Policy, environment: Environment, states: State, keys: Keys, time: Array
) -> tuple[State, Record]:
    """One pull of one run."""
    world, policy_state, waiting = states
    step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys.steps, time)  # in one kernel
    observe_key, rewards_key, policy_key = step_keys
    context, available = environment.observe(observe_key, world)
    rewards = environment.rewards(rewards_key, world, context)
    seen = rewards.mean if policy.sees_means else context
    decision, policy_state = policy.act(policy_key, policy_state, seen, available)
    arm, reward = decision.arm, pick(rewards.sampled, decision.arm)
    if environment.delay is None:
        policy_state = policy.learn(policy_state, decision.ticket, reward)
    else:
        delay = environment.delay.draw(jax.random.fold_in(keys.delays, time))
        waiting = add_waiting(waiting, time, delay, decision.ticket, reward)
        policy_state, waiting = learn_due(policy, policy_state, waiting, time)
    after = environment.advance(world, arm)
    record = record_step(environment, world, after, rewards, available, arm)
    return (after, policy_state, waiting), record


def run_block(
    program: Program, seed: int, first_run: int, moved: Callable[[int], None], stopped: Stopped
) -> Trace:
    """Carries one block to the horizon, on this thread; all of its runs are in the trace."""
    start, proceed = program.compiled()
    words = block_words(seed, program.width, first_run)
    states, records = start(words), []
    for first in range(0, program.horizon, program.steps):
        if stopped.is_set():
            raise CancelledError
        last = min(first + program.steps, program.horizon)
        states, sums = proceed(states, words, first, last)
        record = Record(*jax.device_get(sums))
        refuse_broken(record, first_run)
        records.append(record)
        moved(last - first)
    return add_up(records, program.horizon, program.every)
