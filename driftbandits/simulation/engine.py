"""The engine: a policy in an environment, over many steps and many runs.

Runs go in blocks of a width that depends on the policy alone, never on the machine. A block is
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
from driftbandits.numerics.random_keys import key
from driftbandits.policies import build_policy
from driftbandits.simulation import compiling
from driftbandits.simulation.arguments import Template, template_of
from driftbandits.simulation.delays import add_waiting, learn_due, nothing_waiting
from driftbandits.simulation.devices import device, own_device
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
    if isinstance(environment, str):
        environment = build_environment(environment)
    if isinstance(policy, str):
        policy = build_policy(policy, environment.spec._replace(horizon=horizon))
    program = program_for(policy, environment, horizon, record_every, chunk)
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


class Shape(NamedTuple):
    """Of a block and what is recorded of it."""

    width: int  # runs
    every: int  # steps between recorded times
    points: int  # recorded times of one call at the most


class Steps:
    """The steps of a block, whatever the numbers; compiled once per device that needs them."""

    def __init__(self, template: Template, shape: Shape) -> None:
        start, proceed = block_functions(template, shape)
        keys = block_keys.eval_shape(key(0), shape.width, 0)
        numbers = jax.eval_shape(list, template.numbers)
        self._states = jax.eval_shape(start, numbers, keys)
        self._traced = proceed.trace(numbers, self._states, keys, 0, 0)
        self._compiled: dict[jax.Device | None, jax.stages.Compiled] = {}
        self._lock = threading.Lock()

    def nothing(self) -> State:
        """Stands for the states before the first step."""
        return jax.tree.map(zeros_of, self._states)

    def compiled(self) -> jax.stages.Compiled:
        """For this thread's device; others wait for the first one where they can share it."""
        here = device()
        with self._lock:
            shared = here is None or getattr(jax.config, "jax_compilation_cache_dir", None)
            if shared and not self._compiled:
                self._compiled[here] = self._compile()
        if here not in self._compiled:
            self._compiled[here] = self._compile()
        return self._compiled[here]

    def _compile(self) -> jax.stages.Compiled:
        return self._traced.lower().compile()


class Program:
    """A policy in an environment, for one block; those that differ in numbers share the steps."""

    def __init__(
        self, policy: Policy, environment: Environment, horizon: int, shape: Shape
    ) -> None:
        self.horizon = horizon
        self.shape = shape
        self.width = shape.width
        self._template = template_of((policy, environment))
        self.numbers = self._template.numbers

    def compiled(self) -> jax.stages.Compiled:
        return self.steps().compiled()

    def steps(self) -> Steps:
        with _tracing:  # two threads that both missed the cache would have steps each
            return steps_of(self._template, self.shape)


_tracing = threading.Lock()
steps_of = lru_cache(maxsize=64)(Steps)


@lru_cache(maxsize=64)
def program_for(
    policy: Policy,
    environment: Environment,
    horizon: int,
    record_every: int | None = None,
    chunk: int | None = None,
) -> Program:
    """The program of a policy in an environment; the same arguments give the same object."""
    every = -(-horizon // POINTS) if record_every is None else record_every
    width = block_width(policy)
    chunk = min(CHUNK * width, -(-horizon // 10)) if chunk is None else chunk
    check.integer(record_every=every, chunk=chunk)
    return Program(policy, environment, horizon, Shape(width, every, max(1, chunk // every)))


@partial(jax.jit, static_argnums=1)
def block_keys(seed: Key, width: int, first_run: Array) -> Keys:
    """A run's keys depend on the seed and its index alone."""
    runs = jnp.arange(width) + first_run
    own = jax.vmap(jax.random.fold_in, (None, 0))(seed, runs)
    keys = jax.vmap(jax.random.split, (0, None))(own, 6)
    return Keys(keys[:, 0], keys[:, 1], keys[:, 2:5], keys[:, 5])


def block_width(policy: Policy) -> int:
    """Runs per block: few for a policy with a large state, so that it stays in cache."""
    state = jax.eval_shape(policy.init, key(0))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    fitting = max(BLOCK_BYTES // max(size, 1), 1)
    return min(max(1 << (fitting.bit_length() - 1), NARROWEST), WIDEST)


def block_functions(
    template: Template, shape: Shape
) -> tuple[Callable[..., State], jax.stages.Wrapped]:
    """What starts a block, and what carries it forward by up to `points` recorded times.

    The number of steps is an argument of the compiled loop, so that XLA does not shape the code
    of a step by it.
    """

    def start(numbers: list[Array], keys: Keys) -> State:
        policy, environment = template.with_numbers(numbers)
        return jax.vmap(partial(start_run, policy, environment))(keys)

    def proceed(
        numbers: list[Array], states: State, keys: Keys, first: Array, last: Array
    ) -> tuple[State, Record]:
        policy, environment = template.with_numbers(numbers)
        # Traced once, though it is looked at several times below.
        step = jax.jit(jax.vmap(partial(take_step, policy, environment), (0, 0, None)), inline=True)

        def body(time: Array, carry: tuple[State, Record]) -> tuple[State, Record]:
            states, sums = carry
            states, record = step(states, keys, time)
            point = (time - first) // shape.every
            return states, jax.tree.map(lambda total, new: total.at[point].add(new), sums, record)

        states = jax.lax.cond(first == 0, partial(start, numbers), lambda _: states, keys)
        found = jax.eval_shape(step, states, keys, first)[1]
        sums = jax.tree.map(lambda x: jnp.zeros((shape.points, *x.shape), x.dtype), found)
        return jax.lax.fori_loop(first, last, body, (states, sums))

    return start, compiling.jit(proceed, donate_argnums=1)


def zeros_of(like: jax.ShapeDtypeStruct) -> Array | np.ndarray:
    """By NumPy, for which nothing is compiled; it has no random keys."""
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.lax.full_like(like, 0)
    return np.zeros(like.shape, like.dtype)


def start_run(policy: Policy, environment: Environment, keys: Keys) -> State:
    """The world, the policy's state and what waits, before the first pull of one run."""
    waiting = nothing_waiting(policy, environment, keys.policy_start)
    return environment.init(keys.world_start), policy.init(keys.policy_start), waiting


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
    steps, shape = program.steps(), program.shape
    proceed, numbers = steps.compiled(), jax.device_put(program.numbers, device())
    keys = block_keys(key(seed), shape.width, first_run)
    states, records = steps.nothing(), []
    chunk = shape.every * shape.points
    for first in range(0, program.horizon, chunk):
        if stopped.is_set():
            raise CancelledError
        last = min(first + chunk, program.horizon)
        states, record = proceed(numbers, states, keys, first, last)
        record = jax.device_get(record)
        refuse_broken(record, first_run)
        records.append(record)
        moved(last - first)
    return add_up(records, program.horizon, shape.every)
