"""Shocks: Gaussian arms that are hit by common shocks and recover.

    mean_k(t) = level_k + away_k(t),   away_k(0) = 0
    away_k(t + 1) = decay * away_k(t) + size * s(t) * loading_k + step * N(0, 1)
    s(t) = +1 or -1, each with probability hazard / 2, and else 0
    level_k ~ U(0.25, 0.75),   loading_k ~ U(-1, 1)   once per run

By default half of a shock is gone after some 350 steps. An era ends with every shock. A few means
may leave [0, 1] for a while.

Example: markets, where news moves all prices at once, some up and some down, and then fades.

Paper: Chen, Golrezaei & Bouneffouf (2023), "Non-stationary bandits with auto-regressive temporal
dependency", where each arm is an autoregressive process of order one. The shocks, one common
factor, are ours.

Use it when arms should move together and come back. Not when changes should last: see `abrupt`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.environments.rotting import gaussian_arms
from driftbandits.numerics.random_keys import key_at


class ShocksState(NamedTuple):
    level: Array  # (num_arms,) float32
    loading: Array  # (num_arms,) float32
    away: Array  # (num_arms,) float32, from the level
    words: Array  # (2,) uint32, of the key that all moves come from
    time: Array  # () int32
    shocks: Array  # () int32, so far


def shocks(
    *,
    num_arms: int = 10,
    hazard: float = 0.001,
    size: float = 0.4,
    decay: float = 0.998,
    step: float = 0.003,
    deviation: float = 0.2,
) -> Environment:
    """Gaussian arms hit by common shocks, each to its own degree, that fade.

    Args:
        num_arms: Number of arms.
        hazard: Probability of a shock before each step.
        size: Move of an arm whose loading is 1.
        decay: Share of a departure from the level that is left one step later.
        step: Standard deviation of an arm's own moves.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms)
    check.probability(hazard=hazard, decay=decay)
    check.not_negative(size=size, step=step)
    check.positive(deviation=deviation)

    def init(key: Key) -> ShocksState:
        own, later = jax.random.split(key)
        level, loading = jax.random.uniform(own, (2, num_arms))
        return ShocksState(
            level=0.25 + 0.5 * level,
            loading=2 * loading - 1,
            away=jnp.zeros(num_arms),
            words=jax.random.key_data(later),
            time=jnp.int32(0),
            shocks=jnp.int32(0),
        )

    def means(state: ShocksState) -> Array:
        return state.level + state.away

    def advance(state: ShocksState, arm: Array) -> ShocksState:
        time = state.time + 1
        shock_key, own_key = jax.random.split(key_at(state.words, time))
        number = jax.random.uniform(shock_key)
        shock = jnp.where(number < hazard / 2, -1, jnp.where(number < hazard, 1, 0))
        common = size * shock * state.loading
        away = decay * state.away + common + step * jax.random.normal(own_key, (num_arms,))
        return state._replace(away=away, time=time, shocks=state.shocks + abs(shock))

    def era(state: ShocksState) -> Array:
        return state.shocks

    return gaussian_arms(num_arms, deviation, init, means, advance, era)
