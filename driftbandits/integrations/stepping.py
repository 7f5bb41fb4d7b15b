"""Steps JAX environments from Python: all runs of a block make one pull at a time.

The steps are those of `simulate`: its keys, its `take_step`, its records. Only the policy differs:
it pulls the arms that it is given.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import Decision, Environment, Key, Observation, Policy, State
from driftbandits.simulation import compiling
from driftbandits.simulation.engine import Keys, block_keys, take_step
from driftbandits.simulation.traces import Record


class GivenArm(NamedTuple):
    """The state of a policy that pulls the arm it is given."""

    arm: Array  # () int32, the next pull
    reward: Array  # () float32, what the last one paid


def pulls_given_arm() -> Policy:
    def init(key: Key) -> GivenArm:
        return GivenArm(jnp.int32(0), jnp.float32(0))

    def act(key: Key, state: GivenArm, observation: Observation) -> tuple[Decision, GivenArm]:
        return Decision(state.arm, jnp.zeros(observation.available.size), ()), state

    def learn(state: GivenArm, ticket: tuple[()], reward: Array) -> GivenArm:
        return state._replace(reward=reward)

    return Policy(init, act, learn)


PULLS_GIVEN_ARM = pulls_given_arm()
PAID = 3  # columns of a packed result before those of the next observation


class StepResult(NamedTuple):
    """The outcome of the last pulls, and the observations before the next ones."""

    reward: np.ndarray  # (runs,) float32
    regret: np.ndarray  # (runs,) float32
    delay: np.ndarray  # (runs,) float32, steps until the reward is delivered; -1 is never
    context: np.ndarray  # (runs, context_dim) float32
    available: np.ndarray  # (runs, num_arms) bool
    mean: np.ndarray  # (runs, num_arms) float32, which only a simulator knows
    arms: np.ndarray  # (runs, num_arms, arm_dim) float32
    arm_ids: np.ndarray  # (runs, num_arms) int32; zeros where arms never change


class BlockState(NamedTuple):
    """The state of a block of runs between two pulls."""

    worlds: State  # (runs, ...) each leaf
    time: Array  # () int32, steps done
    sums: (
        Record | None
    )  # (points, runs, ...) between recorded times; None where nothing is recorded


def step_keys(keys: Keys, time: Array) -> tuple[Key, Key]:
    """The keys of the observation and of the rewards, as in `take_step`."""
    observe_key, rewards_key, _ = jax.vmap(jax.random.fold_in, (0, None))(keys.steps, time)
    return observe_key, rewards_key


def observe(environment: Environment, world: State, keys: Keys, time: Array) -> Array:
    """The observation of one run, packed: context, available arms, means, features, numbers."""
    observe_key, rewards_key = step_keys(keys, time)
    context, available, arms, arm_ids = environment.observe(observe_key, world)
    mean = environment.rewards(rewards_key, world, context).mean
    features = [] if arms is None else [arms.ravel()]
    ids = jnp.zeros(mean.size, jnp.int32) if arm_ids is None else arm_ids
    return jnp.concatenate([as_bits(context, available, mean, *features), ids.astype(jnp.int32)])


def as_bits(*values: Array) -> Array:
    """The bits of these numbers as float32, in int32, which has room for the numbers of arms."""
    return jax.lax.bitcast_convert_type(jnp.concatenate(values).astype(jnp.float32), jnp.int32)


def step(
    environment: Environment, world: State, keys: Keys, time: Array, arm: Array
) -> tuple[State, Record, Array]:
    """One pull of one run: the world after it, and the reward, the regret and the delay."""
    given = GivenArm(arm, jnp.float32(0))
    undelayed = environment._replace(delay=None)
    states, record = take_step(PULLS_GIVEN_ARM, undelayed, (world, given, None), keys, time)
    world, given, _ = states
    delay = jnp.int32(0)
    if environment.delay is not None:
        delay = environment.delay.draw(jax.random.fold_in(keys.delays, time))
        delay = jnp.where(delay > environment.delay.longest, -1, delay)
    return world, record, as_bits(jnp.stack([given.reward, record.regret, delay]))


class CompiledSteps(NamedTuple):
    """A block's steps, compiled. Results are packed into one array: each array is slow to fetch."""

    start: Callable[[Keys], tuple[BlockState, np.ndarray]]
    pull: Callable[[BlockState, Keys, np.ndarray], tuple[BlockState, Array]]


@lru_cache(maxsize=64)
def compiled_steps(environment: Environment, every: int, points: int) -> CompiledSteps:
    init_all = compiling.jit(jax.vmap(environment.init))
    observe_all = jax.vmap(partial(observe, environment), (0, 0, None))
    first_look = compiling.jit(observe_all)
    step_all = jax.vmap(partial(step, environment), (0, 0, None, 0))

    def start(keys: Keys) -> tuple[BlockState, np.ndarray]:
        worlds, time = init_all(keys.world_start), jnp.asarray(0, jnp.int32)
        seen = np.pad(first_look(worlds, keys, time), ((0, 0), (PAID, 0)))  # nothing paid yet
        if not points:
            return BlockState(worlds, time, None), seen
        record = jax.eval_shape(step_all, worlds, keys, time, np.zeros(len(seen), np.int32))[1]
        sums = jax.tree.map(lambda leaf: np.zeros((points, *leaf.shape), leaf.dtype), record)
        return BlockState(worlds, time, sums), seen

    def pull(state: BlockState, keys: Keys, arms: Array) -> tuple[BlockState, Array]:
        worlds, time, sums = state
        worlds, record, paid = step_all(worlds, keys, time, arms)
        if sums is not None:
            point = time // every
            sums = jax.tree.map(lambda total, new: total.at[point].add(new), sums, record)
        seen = observe_all(worlds, keys, time + 1)
        return BlockState(worlds, time + 1, sums), jnp.concatenate([paid, seen], axis=1)

    return CompiledSteps(start, compiling.jit(pull, donate_argnums=0))


class SteppedRuns:
    """A block of runs of an environment, in the worlds of `simulate` with the same seed."""

    def __init__(
        self, environment: Environment, seed: int, runs: range, every: int = 1, points: int = 0
    ) -> None:
        self._steps = compiled_steps(environment, every, points)
        self._keys = block_keys(seed, len(runs), runs.start)
        self._spec = environment.spec
        self._state, packed = self._steps.start(self._keys)
        self.latest = self._unpack(packed)

    def pull(self, arms: np.ndarray) -> StepResult:
        """One pull in every run."""
        self._state, packed = self._steps.pull(self._state, self._keys, arms)
        self.latest = self._unpack(packed)
        return self.latest

    def set_worlds(self, world: State) -> None:
        """Replaces the states of the runs' worlds."""
        self._state = self._state._replace(worlds=world)

    def records(self) -> Record:
        """The sums between recorded times."""
        record: Record = jax.device_get(self._state.sums)
        return record

    def _unpack(self, packed: Array | np.ndarray) -> StepResult:
        spec = self._spec
        bits, arms = np.array(packed), spec.num_arms
        ends = np.cumsum([PAID, spec.context_dim, arms, arms, arms * spec.arm_dim])
        paid, context, available, mean, features, ids = np.split(
            bits.view(np.float32), ends, axis=1
        )
        reward, regret, delay = paid.T
        return StepResult(
            reward,
            regret,
            delay,
            context,
            available > 0,
            mean,
            features.reshape(len(bits), arms, spec.arm_dim),
            ids.view(np.int32),
        )
