"""Sleeping arms: the arms of any environment are not always available.

    a number    each arm is available with this probability, independently in each step;
                if no arm would be available, one drawn uniformly is
    a schedule  a list of lists of 0 and 1, one per step and one number per arm; it repeats

The policy sees which arms are available before it chooses, and the regret compares with the best of
them. Arms that the environment itself makes unavailable stay so. If a schedule would leave no arm,
it is ignored for that step.

Examples: goods that are out of stock, servers that are down, advertisers without budget.

Paper: Kleinberg, Niculescu-Mizil & Sharma (2010), "Regret bounds for sleeping experts and bandits".

Use it when arms come and go. Not when an arm goes for good: then retire it from your agent.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Observation, Rewards, State
from driftbandits.numerics.eras import era_of_inner

Awake = Callable[[Key, Array, Array], Array]  # key, time, arms available -> arms available


class SleepingState(NamedTuple):
    inner: State
    time: Array  # () int32


def sleeping(environment: Environment, awake: float | list[list[int]]) -> Environment:
    """Arms sleep: the probability that an arm is available, or a schedule of 0 and 1 per step.

    Args:
        environment: The environment to change.
        awake: The probability, or a list with a list of 0 and 1 for each step.
    """
    num_arms = environment.spec.num_arms
    scheduled = isinstance(awake, list | tuple)
    keep = by_schedule(awake, num_arms) if scheduled else by_chance(awake)

    def init(key: Key) -> SleepingState:
        return SleepingState(environment.init(key), jnp.int32(0))

    def observe(key: Key, state: SleepingState) -> Observation:
        inner_key, own_key = jax.random.split(key)
        inner = environment.observe(inner_key, state.inner)
        return inner._replace(available=keep(own_key, state.time, inner.available))

    def rewards(key: Key, state: SleepingState, context: Array) -> Rewards:
        return environment.rewards(key, state.inner, context)

    def advance(state: SleepingState, arm: Array) -> SleepingState:
        return SleepingState(environment.advance(state.inner, arm), state.time + 1)

    era = era_of_inner(environment)
    return Environment(environment.spec, init, observe, rewards, advance, era, environment.delay)


def by_chance(probability: Any) -> Awake:
    check.probability(sleeping=probability)

    def keep(key: Key, time: Array, available: Array) -> Array:
        level = jnp.where(available, jax.random.uniform(key, available.shape), jnp.inf)
        return (level < probability) | (level == jnp.min(level))

    return keep


def by_schedule(schedule: Any, num_arms: int) -> Awake:
    rows = rows_from(schedule, num_arms)

    def keep(key: Key, time: Array, available: Array) -> Array:
        both = jnp.asarray(rows)[time % len(rows)] & available
        return jnp.where(jnp.any(both), both, available)

    return keep


def rows_from(schedule: Any, num_arms: int) -> np.ndarray:
    rule = f"a probability, or a list of lists of {num_arms} numbers 0 or 1, not all 0"
    for row in schedule or [None]:
        if (
            not isinstance(row, list | tuple)
            or len(row) != num_arms
            or any(value not in (0, 1) for value in row)
            or not any(row)
        ):
            check.fail("sleeping", rule, schedule)
    return np.asarray(schedule, bool)
