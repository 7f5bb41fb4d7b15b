"""Rising arms: an arm gets better as it is pulled, up to its own limit.

    mean_k(n) = c_k (1 - exp(-n / pace_k)),   c_k ~ U(0, 1),   pace_k ~ U(0, 2 pace)   once per run

where n is the number of pulls of arm k, this one included. Rewards are Gaussian.

Examples: models that are trained while they serve, new workers.

Paper: Metelli, Trovo, Pirola & Restelli (2022), "Stochastic rising bandits", the rested case: the
means grow with an arm's own pulls, and less and less.

Use it when patience should pay. Not when you need the best possible sequence as a reference: regret
and `oracle` use the arm that is best at the moment. Pulling one slow arm again and again may beat
it, and the policy regret may be below zero. The reward is the safer measure here.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.environments.rotting import gaussian_arms


class RisingState(NamedTuple):
    pulls: Array  # (num_arms,) int32
    limit: Array  # (num_arms,) float32, mean of an arm that was pulled for ever
    pace: Array  # (num_arms,) float32


def rising(*, num_arms: int = 10, pace: float = 500.0, deviation: float = 0.1) -> Environment:
    """Gaussian arms whose means grow with their own pulls and level off.

    Args:
        num_arms: Number of arms.
        pace: Pulls after which an arm has 63% of its limit, on average over the arms.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms)
    check.positive(pace=pace, deviation=deviation)

    def init(key: Key) -> RisingState:
        limit_key, pace_key = jax.random.split(key)
        limit = jax.random.uniform(limit_key, (num_arms,))
        paces = 2 * pace * (1 - jax.random.uniform(pace_key, (num_arms,)))  # never 0
        return RisingState(jnp.zeros(num_arms, jnp.int32), limit, paces)

    def means(state: RisingState) -> Array:
        return -state.limit * jnp.expm1(-(state.pulls + 1) / state.pace)

    def advance(state: RisingState, arm: Array) -> RisingState:
        return state._replace(pulls=state.pulls + (jnp.arange(num_arms) == arm))

    return gaussian_arms(num_arms, deviation, init, means, advance)
