"""Worlds that are pulled from outside of JAX: runs that go on together, a step at a time.

The steps are those of `simulate`: its keys, its `take_step`, its records. Only the policy is
another one, which pulls what it is told to.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import Decision, Environment, Key, Policy, State
from driftbandits.keys import key
from driftbandits.simulation import Keys, Record, block_functions, block_keys, take_step


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


class News(NamedTuple):
    """What the last pulls paid, and what there is to see before the next ones."""

    reward: np.ndarray  # (runs,) float32
    regret: np.ndarray  # (runs,) float32
    context: np.ndarray  # (runs, context_dim) float32
    available: np.ndarray  # (runs, num_arms) bool
    mean: np.ndarray  # (runs, num_arms) float32, which only a simulator knows


class Moment(NamedTuple):
    """How far some runs are."""

    states: State  # of the worlds, and of the policy that is told
    time: Array  # () int32, steps done
    sums: Record | None  # (points, runs, ...) between recorded times; None where nobody asks


class Steps(NamedTuple):
    """An environment's runs, compiled. News come as one table: each array costs time to fetch."""

    start: Callable[[Keys], tuple[Moment, np.ndarray]]
    pull: Callable[[Moment, Keys, np.ndarray], tuple[Moment, Array]]


@lru_cache(maxsize=64)
def steps_of(environment: Environment, every: int, points: int) -> Steps:
    begin = block_functions(OBEDIENT, environment, 1, 1)[0]

    def look(states: State, keys: Keys, time: Array) -> Array:
        observe_key, rewards_key, _ = jax.vmap(jax.random.fold_in, (0, None))(keys.steps, time)
        context, available = environment.observe(observe_key, states[0])
        mean = environment.rewards(rewards_key, states[0], context).mean
        return jnp.concatenate([context, available, mean]).astype(jnp.float32)

    def step(states: State, keys: Keys, time: Array, arm: Array) -> tuple[State, Record]:
        states = (states[0], Told(arm, jnp.float32(0)), *states[2:])
        return take_step(OBEDIENT, environment, states, keys, time)

    look_at_all = jax.jit(jax.vmap(look, (0, 0, None)))
    step_all = jax.vmap(step, (0, 0, None, 0))

    def start(keys: Keys) -> tuple[Moment, np.ndarray]:
        states, time = begin(keys), jnp.asarray(0, jnp.int32)
        record = jax.eval_shape(step_all, states, keys, time, states[1].arm)[1]
        sums = jax.tree.map(lambda leaf: np.zeros((points, *leaf.shape), leaf.dtype), record)
        seen = np.pad(look_at_all(states, keys, time), ((0, 0), (2, 0)))  # nothing paid yet
        return Moment(states, time, sums if points else None), seen

    def pull(moment: Moment, keys: Keys, arms: Array) -> tuple[Moment, Array]:
        states, time, sums = moment
        states, record = step_all(states, keys, time, arms)
        if sums is not None:
            point = time // every
            sums = jax.tree.map(lambda total, new: total.at[point].add(new), sums, record)
        paid = jnp.stack([states[1].reward, record.regret], axis=1)
        seen = look_at_all(states, keys, time + 1)
        return Moment(states, time + 1, sums), jnp.concatenate([paid, seen], axis=1)

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
        self._moment = self._moment._replace(states=(world, *self._moment.states[1:]))

    def records(self) -> Record:
        """What the runs add up to between recorded times."""
        record: Record = jax.device_get(self._moment.sums)
        return record

    def _read(self, table: Array | np.ndarray) -> News:
        values = np.array(table)
        first = 2 + self._spec.context_dim
        second = first + self._spec.num_arms
        return News(
            values[:, 0],
            values[:, 1],
            values[:, 2:first],
            values[:, first:second] > 0,
            values[:, second:],
        )
