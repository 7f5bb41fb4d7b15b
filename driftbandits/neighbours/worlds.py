"""Worlds that are pulled from outside of JAX: runs that go on together, a step at a time.

The steps are those of `simulate`: its keys, its `take_step`, its records. Only the policy is
another one, which pulls what it is told to.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import Decision, Environment, Key, Policy, State
from driftbandits.keys import key
from driftbandits.simulation import DELAY, Keys, block_keys, take_step
from driftbandits.traces import Record


class Told(NamedTuple):
    """The state of a policy that does as it is told."""

    arm: Array  # () int32, the next pull
    reward: Array  # () float32, what the last one paid


def does_as_told() -> Policy:
    def init(key: Key) -> Told:
        return Told(jnp.int32(0), jnp.float32(0))

    def act(key: Key, told: Told, seen: Array, available: Array) -> tuple[Decision, Told]:
        return Decision(told.arm, jnp.zeros(available.size), ()), told

    def learn(told: Told, ticket: tuple[()], reward: Array) -> Told:
        return told._replace(reward=reward)

    return Policy(init, act, learn)


OBEDIENT = does_as_told()
PAID = 3  # columns of a table of news before those of what there is to see


class News(NamedTuple):
    """What the last pulls paid, and what there is to see before the next ones."""

    reward: np.ndarray  # (runs,) float32
    regret: np.ndarray  # (runs,) float32
    delay: np.ndarray  # (runs,) float32, steps until the reward is to be told; -1 is never
    context: np.ndarray  # (runs, context_dim) float32
    available: np.ndarray  # (runs, num_arms) bool
    mean: np.ndarray  # (runs, num_arms) float32, which only a simulator knows


class Moment(NamedTuple):
    """How far some runs are."""

    worlds: State  # (runs, ...) each leaf
    time: Array  # () int32, steps done
    sums: Record | None  # (points, runs, ...) between recorded times; None where nobody asks


def step_keys(keys: Keys, time: Array) -> tuple[Key, Key]:
    """Of what is observed and of the rewards, as in `take_step`."""
    observe_key, rewards_key, _ = jax.vmap(jax.random.fold_in, (0, None))(keys.steps, time)
    return observe_key, rewards_key


def look(environment: Environment, world: State, keys: Keys, time: Array) -> Array:
    """What there is to see in one run: context, available arms, means."""
    observe_key, rewards_key = step_keys(keys, time)
    context, available = environment.observe(observe_key, world)
    mean = environment.rewards(rewards_key, world, context).mean
    return jnp.concatenate([context, available, mean]).astype(jnp.float32)


def step(
    environment: Environment, world: State, keys: Keys, time: Array, arm: Array
) -> tuple[State, Record, Array]:
    """One pull of one run: the world after it, and the reward, the regret and the delay."""
    told, law = Told(arm, jnp.float32(0)), environment.delay
    at_once = environment._replace(delay=None)
    states, record = take_step(OBEDIENT, at_once, (world, told, None), keys, time)
    world, told, _ = states
    delay = jnp.int32(0)
    if law is not None:
        delay = law.draw(jax.random.fold_in(step_keys(keys, time)[1], DELAY))
        delay = jnp.where(delay > law.longest, -1, delay)
    return world, record, jnp.stack([told.reward, record.regret, delay])


class Steps(NamedTuple):
    """An environment's runs, compiled. News come as one table: each array costs time to fetch."""

    start: Callable[[Keys], tuple[Moment, np.ndarray]]
    pull: Callable[[Moment, Keys, np.ndarray], tuple[Moment, Array]]


@lru_cache(maxsize=64)
def steps_of(environment: Environment, every: int, points: int) -> Steps:
    draw_all = jax.jit(jax.vmap(environment.init))
    look_at_all = jax.jit(jax.vmap(partial(look, environment), (0, 0, None)))
    step_all = jax.vmap(partial(step, environment), (0, 0, None, 0))

    def start(keys: Keys) -> tuple[Moment, np.ndarray]:
        worlds, time = draw_all(keys.world_start), jnp.asarray(0, jnp.int32)
        seen = np.pad(look_at_all(worlds, keys, time), ((0, 0), (PAID, 0)))  # nothing paid yet
        if not points:
            return Moment(worlds, time, None), seen
        record = jax.eval_shape(step_all, worlds, keys, time, np.zeros(len(seen), np.int32))[1]
        sums = jax.tree.map(lambda leaf: np.zeros((points, *leaf.shape), leaf.dtype), record)
        return Moment(worlds, time, sums), seen

    def pull(moment: Moment, keys: Keys, arms: Array) -> tuple[Moment, Array]:
        worlds, time, sums = moment
        worlds, record, paid = step_all(worlds, keys, time, arms)
        if sums is not None:
            point = time // every
            sums = jax.tree.map(lambda total, new: total.at[point].add(new), sums, record)
        seen = look_at_all(worlds, keys, time + 1)
        return Moment(worlds, time + 1, sums), jnp.concatenate([paid, seen], axis=1)

    return Steps(start, jax.jit(pull, donate_argnums=0))


class Runs:
    """Some runs of an environment, in the worlds that `simulate` gives them with this seed."""

    def __init__(
        self, environment: Environment, seed: int, runs: range, every: int = 1, points: int = 0
    ) -> None:
        self._steps = steps_of(environment, every, points)
        self._keys = block_keys(key(seed), len(runs), runs.start)
        self._spec = environment.spec
        self._moment, table = self._steps.start(self._keys)
        self.news = self._read(table)

    def pull(self, arms: np.ndarray) -> News:
        """One pull in every run."""
        self._moment, table = self._steps.pull(self._moment, self._keys, arms)
        self.news = self._read(table)
        return self.news

    def show(self, world: State) -> None:
        """Puts a world of somebody else in the place of the runs' own."""
        self._moment = self._moment._replace(worlds=world)

    def records(self) -> Record:
        """What the runs add up to between recorded times."""
        record: Record = jax.device_get(self._moment.sums)
        return record

    def _read(self, table: Array | np.ndarray) -> News:
        values = np.array(table)
        first = PAID + self._spec.context_dim
        second = first + self._spec.num_arms
        reward, regret, delay = values[:, :PAID].T
        available, mean = values[:, first:second] > 0, values[:, second:]
        return News(reward, regret, delay, values[:, PAID:first], available, mean)
