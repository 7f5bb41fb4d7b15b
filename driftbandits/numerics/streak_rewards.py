"""Environments whose rewards depend on how often the last arm was pulled in a row."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import Environment, Key, Observation, Rewards, State
from driftbandits.numerics.eras import era_of_inner


class StreakState(NamedTuple):
    inner: State
    last: Array  # () int32, the arm pulled last; -1 before the first pull
    streak: Array  # () int32, its pulls in a row


def with_streaks(
    environment: Environment, change: Callable[[Rewards, Array, Array], Rewards]
) -> Environment:
    """Changes the rewards of an environment.

    `change` gets the rewards, a mask of the arm pulled last and the length of its streak.
    """
    low, high = environment.spec.reward_range
    spec = environment.spec._replace(reward_range=(min(low, 0.0), max(high, 0.0)))

    def init(key: Key) -> StreakState:
        return StreakState(environment.init(key), jnp.int32(-1), jnp.int32(0))

    def observe(key: Key, state: StreakState) -> Observation:
        return environment.observe(key, state.inner)

    def rewards(key: Key, state: StreakState, context: Array) -> Rewards:
        found = environment.rewards(key, state.inner, context)
        return change(found, jnp.arange(spec.num_arms) == state.last, state.streak)

    def advance(state: StreakState, arm: Array) -> StreakState:
        streak = jnp.where(arm == state.last, state.streak + 1, 1)
        return StreakState(environment.advance(state.inner, arm), arm, streak)

    return Environment(
        spec, init, observe, rewards, advance, era_of_inner(environment), environment.delay
    )
