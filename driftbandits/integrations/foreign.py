"""Environments outside of JAX, one run at a time, recorded as those of `simulate` are."""

from functools import lru_cache
from typing import NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import (
    BanditSpec,
    Environment,
    Key,
    Observation,
    Rewards,
    blank_observation,
)
from driftbandits.integrations.stepping import SteppedRuns, StepResult
from driftbandits.simulation.traces import Record


class ForeignObservation(NamedTuple):
    """What a foreign environment shows before a pull."""

    context: np.ndarray  # (context_dim,) float32
    available: np.ndarray  # (num_arms,) bool
    mean: np.ndarray  # (num_arms,) float32; NaN where unknown
    arms: np.ndarray  # (num_arms, arm_dim) float32
    arm_ids: np.ndarray  # (num_arms,) int32; zeros where arms never change


class ForeignEnvironment(Protocol):
    """An environment outside of JAX."""

    spec: BanditSpec

    def start(self, seed: int) -> ForeignObservation:
        """A new run."""

    def pull(self, arm: int) -> tuple[float, ForeignObservation]:
        """The reward of a pull, and what is observed after it."""


class ForeignState(NamedTuple):
    """A step of a foreign environment as the state of one of ours."""

    sampled: Array | np.ndarray  # (num_arms,) float32
    mean: Array | np.ndarray  # (num_arms,) float32
    available: Array | np.ndarray  # (num_arms,) bool


@lru_cache(maxsize=64)
def replica(spec: BanditSpec) -> Environment:
    """An environment whose state is given from outside, so that its steps are recorded as ours."""
    arms, blank = jnp.zeros(spec.num_arms), blank_observation(spec)

    def init(key: Key) -> ForeignState:
        return ForeignState(arms, arms, arms > 0)

    def observe(key: Key, state: ForeignState) -> Observation:
        return blank._replace(available=jnp.asarray(state.available))

    def rewards(key: Key, state: ForeignState, context: Array) -> Rewards:
        return Rewards(jnp.asarray(state.sampled), jnp.asarray(state.mean))

    def advance(state: ForeignState, arm: Array) -> ForeignState:
        return state

    return Environment(spec, init, observe, rewards, advance)


class ForeignRun:
    """One run of a foreign environment, with the methods of `SteppedRuns`."""

    def __init__(
        self, environment: ForeignEnvironment, seed: int, run: int, every: int, points: int
    ) -> None:
        self._environment = environment
        self._recorded = SteppedRuns(
            replica(environment.spec), seed, range(run, run + 1), every, points
        )
        self._observation = environment.start(seed + run)
        self.latest = self._result(0.0, 0.0)

    def pull(self, arms: np.ndarray) -> StepResult:
        before, arm = self._observation, int(arms[0])
        reward, self._observation = self._environment.pull(arm)
        sampled = np.full(self._environment.spec.num_arms, np.nan, np.float32)
        sampled[arm] = reward
        self._recorded.set_worlds(
            ForeignState(sampled[None], before.mean[None], before.available[None])
        )
        self.latest = self._result(reward, float(self._recorded.pull(arms).regret[0]))
        return self.latest

    def records(self) -> Record:
        return self._recorded.records()

    def _result(self, reward: float, regret: float) -> StepResult:
        paid = np.array([[reward], [regret], [0.0]], np.float32)  # and without a delay
        return StepResult(*paid, *(values[None] for values in self._observation))
