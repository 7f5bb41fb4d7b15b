"""A limit on pulls in a row, for any environment.

After `limit` pulls of one arm in a row its reward is 0, until another arm is pulled. Its mean is
then 0 too, so the regret compares with the best arm that is not exhausted, as long as one of the
others is worth more than nothing (else doing so pays best, and is what the regret compares with).

Rotman & Wolf (2023), section 4, "Time Dependent Multi-Arm Bandit with Correlative Arms".
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Observation, Rewards, State
from driftbandits.parts.eras import era_of_inner


class LimitedState(NamedTuple):
    inner: State
    last: Array  # () int32, the arm pulled last; -1 before the first pull
    streak: Array  # () int32, its pulls in a row


def max_consecutive(environment: Environment, limit: int) -> Environment:
    """An arm pays nothing after this many pulls in a row, until another arm is pulled."""
    check.whole(max_consecutive=limit)
    low, high = environment.spec.reward_range
    spec = environment.spec._replace(reward_range=(min(low, 0.0), max(high, 0.0)))

    def init(key: Key) -> LimitedState:
        return LimitedState(environment.init(key), jnp.int32(-1), jnp.int32(0))

    def observe(key: Key, state: LimitedState) -> Observation:
        return environment.observe(key, state.inner)

    def rewards(key: Key, state: LimitedState, context: Array) -> Rewards:
        sampled, mean = environment.rewards(key, state.inner, context)
        exhausted = (jnp.arange(spec.num_arms) == state.last) & (state.streak >= limit)
        return Rewards(jnp.where(exhausted, 0.0, sampled), jnp.where(exhausted, 0.0, mean))

    def advance(state: LimitedState, arm: Array) -> LimitedState:
        streak = jnp.where(arm == state.last, state.streak + 1, 1)
        return LimitedState(environment.advance(state.inner, arm), arm, streak)

    return Environment(spec, init, observe, rewards, advance, era_of_inner(environment))
