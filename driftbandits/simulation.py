"""The engine: a policy in an environment, over many steps and many runs.

Runs go in blocks of a width that depends on the policy alone, never on the machine. A block is
one XLA program on one core: a loop over time around a vmap over its runs. Threads, one per core,
carry the blocks forward a chunk of steps at a time. Every run has its own keys, made from the seed
and its index, and the world's keys are apart from the policy's. So the same seed gives the same
numbers for any number of cores, chunks and runs, and all policies meet the same worlds.
"""

import os
import queue
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Policy, Rewards, State
from driftbandits.environments import build_environment
from driftbandits.policies import build_policy

POINTS = 1000  # how many times a run is recorded by default
BLOCK_BYTES = 4 * 2**20  # the states of one block should stay in a core's cache
NARROWEST, WIDEST = 4, 64
TURNS = 8  # blocks under way per core


class Trace(NamedTuple):
    """What happened in every run, at the recorded times; sums from the first step on."""

    times: np.ndarray  # (points,) int64, steps done
    regret: np.ndarray  # (runs, points) best mean of the moment minus the mean of the pulled arm
    realised_regret: np.ndarray  # (runs, points) the same with sampled rewards
    expected_reward: np.ndarray  # (runs, points) means of the pulled arms
    reward: np.ndarray  # (runs, points) sampled rewards of the pulled arms
    pulls: np.ndarray  # (runs, points, num_arms) int64


class Record(NamedTuple):
    """Sums over the steps between two recorded times; the host adds them up in float64."""

    regret: Array
    realised_regret: Array
    expected_reward: Array
    reward: Array
    pulls: Array
    nothing_available: Array  # steps without an available arm
    not_finite: Array  # steps with a reward or a mean that is not a finite number
    no_choice: Array  # steps in which the policy named no available arm


class Keys(NamedTuple):
    """The four sources of randomness of a run."""

    world_start: Key
    world: Key
    policy_start: Key
    policy: Key


class Block(NamedTuple):
    """Some runs side by side, and how far they are."""

    first_run: int
    done: int = 0
    keys: Keys | None = None  # (width,) each; made when the block starts
    states: State = None  # of the world and the policy


class Program(NamedTuple):
    """A policy in an environment, compiled for one block."""

    start: Callable[[Keys], State]
    proceed: Callable[[State, Keys, int, int], tuple[State, Record]]
    steps: int  # how many `proceed` takes at the most


Progress = Callable[[int, int], None]


def simulate(
    policy: Policy | str,
    environment: Environment | str,
    *,
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    record_every: int | None = None,
    chunk: int = 500,
    cores: int | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Lets a policy pull in an environment.

    Args:
        policy: a policy, or its name with settings as in "recurrent(energy=0)".
        environment: an environment, or its name as in "sinusoidal(max_consecutive=10)".
        horizon: pulls per run.
        runs: independent repetitions; more of them do not change the first ones.
        seed: of everything random.
        record_every: steps between recorded times; None keeps about a thousand times.
            Memory grows with horizon / record_every.
        chunk: steps between two calls of `progress`, about.
        cores: how many to use; None is all of them. The numbers do not depend on it.
        progress: called with the steps done and the steps to do, over all blocks of runs.
    """
    check.whole(horizon=horizon, runs=runs, chunk=chunk)
    check.whole(seed=seed, at_least=0)
    if isinstance(environment, str):
        environment = build_environment(environment)
    if isinstance(policy, str):
        policy = build_policy(policy, environment.spec._replace(horizon=horizon))
    every = -(-horizon // POINTS) if record_every is None else record_every
    cores = available_cores() if cores is None else cores
    check.whole(record_every=every, cores=cores)

    program = compile_block(policy, environment, every, max(1, chunk // every))
    width = block_width(policy)
    blocks = [Block(first_run) for first_run in range(0, runs, width)]
    keys_of = partial(block_keys, seed, width)
    records = run_blocks(program, keys_of, blocks, horizon, cores, progress or ignore)
    return add_up(records, horizon, every, runs)


def available_cores() -> int:
    """Cores that this process may use, where the system tells."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def ignore(done: int, total: int) -> None:
    """Nobody wants to know how far it is."""


def block_keys(seed: int, width: int, first_run: int) -> Keys:
    """A run's keys depend on the seed and its index alone."""
    runs = jnp.arange(first_run, first_run + width)
    own = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed), runs)
    return Keys(*jax.vmap(jax.random.split, (0, None), 1)(own, 4))


def block_width(policy: Policy) -> int:
    """Runs per block: few for a policy with a large state, so that it stays in cache."""
    state = jax.eval_shape(policy.init, jax.random.key(0))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    fitting = max(BLOCK_BYTES // max(size, 1), 1)
    return min(max(1 << (fitting.bit_length() - 1), NARROWEST), WIDEST)


@lru_cache(maxsize=64)
def compile_block(policy: Policy, environment: Environment, every: int, points: int) -> Program:
    """The program that carries a block forward by up to `points` recorded times.

    The number of steps is an argument of the compiled loop, so that XLA does not shape the code
    of a step by it.
    """
    jit = partial(jax.jit, compiler_options={"xla_cpu_multi_thread_eigen": False})

    def start(keys: Keys) -> State:
        return environment.init(keys.world_start), policy.init(keys.policy_start)

    step = jax.vmap(partial(take_step, policy, environment), (0, 0, None))

    def interval(states: State, keys: Keys, first: Array, last: Array) -> tuple[State, Record]:
        def body(time: Array, carry: tuple[State, Record]) -> tuple[State, Record]:
            states, sums = carry
            states, record = step(states, keys, time)
            return states, jax.tree.map(jnp.add, sums, record)

        shapes = jax.eval_shape(step, states, keys, first)[1]
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.fori_loop(first, last, body, (states, zeros))

    def proceed(states: State, keys: Keys, first: Array, last: Array) -> tuple[State, Record]:
        def one(states: State, point: Array) -> tuple[State, Record]:
            begin = first + point * every
            return interval(states, keys, begin, jnp.minimum(begin + every, last))

        return jax.lax.scan(one, states, jnp.arange(points))

    return Program(jit(jax.vmap(start)), jit(proceed, donate_argnums=0), every * points)


def take_step(
    policy: Policy, environment: Environment, states: State, keys: Keys, time: Array
) -> tuple[State, Record]:
    """One pull of one run."""
    world, mind = states
    observe_key, rewards_key = jax.random.split(jax.random.fold_in(keys.world, time))
    context, available = environment.observe(observe_key, world)
    rewards = environment.rewards(rewards_key, world, context)
    seen = rewards.mean if policy.sees_means else context
    decision, mind = policy.act(jax.random.fold_in(keys.policy, time), mind, seen, available)
    arm = decision.arm
    mind = policy.learn(mind, decision.ticket, rewards.sampled[arm])
    states = environment.advance(world, arm), mind
    return states, note(rewards, available, arm)


def note(rewards: Rewards, available: Array, arm: Array) -> Record:
    """What one step adds to the sums."""
    mean, sampled = rewards.mean[arm], rewards.sampled[arm]
    return Record(
        jnp.max(rewards.mean, where=available, initial=-jnp.inf) - mean,
        jnp.max(rewards.sampled, where=available, initial=-jnp.inf) - sampled,
        mean,
        sampled,
        (jnp.arange(available.size) == arm).astype(jnp.int32),
        (~available.any()).astype(jnp.int32),
        (~jnp.isfinite(rewards.sampled + rewards.mean).all()).astype(jnp.int32),
        ((arm < 0) | ~available[arm]).astype(jnp.int32),
    )


def run_blocks(
    program: Program,
    keys_of: Callable[[int], Keys],
    blocks: list[Block],
    horizon: int,
    cores: int,
    progress: Progress,
) -> list[list[Record]]:
    """Carries all blocks to the horizon, on threads; returns each block's records in time order."""
    records: dict[int, list[Record]] = {block.first_run: [] for block in blocks}
    waiting: queue.SimpleQueue[Block | None] = queue.SimpleQueue()
    moved: queue.SimpleQueue[tuple[Block, Record] | Exception] = queue.SimpleQueue()
    stop = threading.Event()
    args = (program, keys_of, horizon, waiting, moved, stop)
    count = min(cores, len(blocks))
    workers = [threading.Thread(target=work, args=args, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()

    # Only some blocks take turns at a time, which bounds the memory.
    unstarted = iter(blocks)
    for block in islice(unstarted, TURNS * count):
        waiting.put(block)
    done, total = 0, horizon * len(blocks)
    progress(done, total)
    try:
        while done < total:
            outcome = moved.get()
            if isinstance(outcome, Exception):
                raise outcome
            block, record = outcome
            refuse_broken(record, block.first_run)
            records[block.first_run].append(record)
            done += (block.done - 1) % program.steps + 1  # what this chunk has added
            progress(done, total)
            successor = block if block.done < horizon else next(unstarted, None)
            if successor is not None:
                waiting.put(successor)
    finally:
        stop.set()
        for _ in workers:
            waiting.put(None)
        # A thread that outlives the interpreter inside XLA would abort the whole process.
        for worker in workers:
            worker.join()
    return list(records.values())


def work(
    program: Program,
    keys_of: Callable[[int], Keys],
    horizon: int,
    waiting: "queue.SimpleQueue[Block | None]",
    moved: "queue.SimpleQueue[tuple[Block, Record] | Exception]",
    stop: threading.Event,
) -> None:
    """A thread's life: take a waiting block, carry it one chunk forward, hand it back."""
    while (block := waiting.get()) is not None and not stop.is_set():
        try:
            keys = block.keys or keys_of(block.first_run)
            states = program.start(keys) if block.states is None else block.states
            done = min(block.done + program.steps, horizon)
            states, record = program.proceed(states, keys, block.done, done)
            moved.put((Block(block.first_run, done, keys, states), jax.device_get(record)))
        except Exception as error:
            moved.put(error)


def refuse_broken(record: Record, first_run: int) -> None:
    """Refuses a world that makes no sense, and a policy that has diverged."""
    for name, rule, steps in (
        ("available", "true for at least one arm at every step", record.nothing_available),
        ("reward", "a finite number at every step", record.not_finite),
        ("arm", "an available one (has the policy diverged to NaN?)", record.no_choice),
    ):
        if steps.any():
            run = first_run + int(np.argmax(steps.any(axis=0)))
            check.fail(name, rule, f"{int(steps.sum())} steps without, the first in run {run}")


def add_up(blocks: list[list[Record]], horizon: int, every: int, runs: int) -> Trace:
    """From the sums between recorded times to sums from the start, runs first."""
    points = -(-horizon // every)

    def total(name: str) -> np.ndarray:
        pieces = [np.concatenate([getattr(r, name) for r in block])[:points] for block in blocks]
        sums = np.concatenate(pieces, axis=1)[:, :runs].swapaxes(0, 1)
        kind = np.int64 if sums.dtype.kind == "i" else np.float64
        return sums.cumsum(axis=1, dtype=kind)

    times = np.minimum((np.arange(points) + 1) * every, horizon)
    return Trace(times, *(total(name) for name in Trace._fields[1:]))
