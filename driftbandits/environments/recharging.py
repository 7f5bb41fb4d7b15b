"""Recharging arms: an arm is worth more the longer it has not been pulled.

    mean_k = c_k (1 - exp(-(steps since the last pull of k) / pace_k)),   c_k for a fresh arm
    c_k ~ U(0, 1),   pace_k ~ U(0, 2 pace)   once per run

Rewards are Gaussian.

Examples: customers just e-mailed, a fallow field, a joke.

Paper: Kleinberg & Immorlica (2018), "Recharging bandits", where means are any concave functions of
the time since the last pull.

Use it when arms should recover. Not when you need the best possible sequence as a reference: regret
and `oracle` use the arm that is best at the moment, and waiting for a slow and rich arm may beat
it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.environments.rotting import gaussian_arms


class RechargingState(NamedTuple):
    rest: Array  # (num_arms,) float32, steps since the last pull; infinite before the first
    full: Array  # (num_arms,) float32, mean of a fresh arm
    pace: Array  # (num_arms,) float32


def recharging(*, num_arms: int = 10, pace: float = 10.0, deviation: float = 0.1) -> Environment:
    """Gaussian arms whose means recover with the time since their last pull.

    Args:
        num_arms: Number of arms.
        pace: Steps after which an arm has recovered 63% of its worth, on average over the arms.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms)
    check.positive(pace=pace, deviation=deviation)

    def init(key: Key) -> RechargingState:
        full_key, pace_key = jax.random.split(key)
        full = jax.random.uniform(full_key, (num_arms,))
        paces = 2 * pace * (1 - jax.random.uniform(pace_key, (num_arms,)))  # never 0
        return RechargingState(jnp.full(num_arms, jnp.inf), full, paces)

    def means(state: RechargingState) -> Array:
        return -state.full * jnp.expm1(-state.rest / state.pace)

    def advance(state: RechargingState, arm: Array) -> RechargingState:
        return state._replace(rest=jnp.where(jnp.arange(num_arms) == arm, 1.0, state.rest + 1))

    return gaussian_arms(num_arms, deviation, init, means, advance)
