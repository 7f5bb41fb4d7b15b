"""Worlds that live outside of JAX, one run at a time, recorded as those of `simulate` are."""

from functools import lru_cache
from typing import NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.neighbours.worlds import News, Runs
from driftbandits.traces import Record


class Scene(NamedTuple):
    """What a foreign world shows before a pull."""

    context: np.ndarray  # (context_dim,) float32
    available: np.ndarray  # (num_arms,) bool
    mean: np.ndarray  # (num_arms,) float32; NaN where nobody knows


class ForeignWorld(Protocol):
    """A world that lives outside of JAX."""

    spec: BanditSpec

    def start(self, seed: int) -> Scene:
        """A new run."""

    def pull(self, arm: int) -> tuple[float, Scene]:
        """The reward of a pull, and what there is to see after it."""


class Shown(NamedTuple):
    """A step of a foreign world as the state of one of ours."""

    sampled: Array | np.ndarray  # (num_arms,) float32
    mean: Array | np.ndarray  # (num_arms,) float32
    available: Array | np.ndarray  # (num_arms,) bool


@lru_cache(maxsize=64)
def as_shown(spec: BanditSpec) -> Environment:
    """An environment that is what somebody else shows, so that a step can be recorded as ours."""
    arms, context = jnp.zeros(spec.num_arms), jnp.zeros(spec.context_dim)

    def init(key: Key) -> Shown:
        return Shown(arms, arms, arms > 0)

    def observe(key: Key, shown: Shown) -> Observation:
        return Observation(context, jnp.asarray(shown.available))

    def rewards(key: Key, shown: Shown, context: Array) -> Rewards:
        return Rewards(jnp.asarray(shown.sampled), jnp.asarray(shown.mean))

    def advance(shown: Shown, arm: Array) -> Shown:
        return shown

    return Environment(spec, init, observe, rewards, advance)


class Visit:
    """One run in a foreign world, with the methods of `Runs`."""

    def __init__(self, world: ForeignWorld, seed: int, run: int, every: int, points: int) -> None:
        self._world = world
        self._book = Runs(as_shown(world.spec), seed, range(run, run + 1), every, points)
        self._scene = world.start(seed + run)
        self.news = self._told(0.0, 0.0)

    def pull(self, arms: np.ndarray) -> News:
        before, arm = self._scene, int(arms[0])
        reward, self._scene = self._world.pull(arm)
        sampled = np.full(self._world.spec.num_arms, np.nan, np.float32)
        sampled[arm] = reward
        self._book.show(Shown(sampled[None], before.mean[None], before.available[None]))
        self.news = self._told(reward, float(self._book.pull(arms).regret[0]))
        return self.news

    def records(self) -> Record:
        return self._book.records()

    def _told(self, reward: float, regret: float) -> News:
        paid = np.array([[reward], [regret], [0.0]], np.float32)  # and told at once
        return News(*paid, *(values[None] for values in self._scene))
