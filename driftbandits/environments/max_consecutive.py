"""Limit on pulls in a row: an arm of any environment pays 0 after too many pulls in a row.

    after `limit` pulls of arm k in a row: reward_k = mean_k = 0, until another arm is pulled

The regret compares with the best arm that is not exhausted. (If all others pay less than 0, the
exhausted arm is the best one, and the regret compares with it.)

Examples: a customer who does not want the same offer an eleventh time.

Paper: Rotman & Wolf (2023), section 4, "Time Dependent Multi-Arm Bandit with Correlative Arms".

Use it when repetition should suddenly pay nothing. Not when it should pay less and less: see
`fatigue`.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Rewards
from driftbandits.numerics.streak_rewards import with_streaks


def max_consecutive(environment: Environment, limit: int) -> Environment:
    """An arm pays nothing after this many pulls in a row, until another arm is pulled.

    Args:
        environment: The environment to change.
        limit: The number of pulls.
    """
    check.integer(max_consecutive=limit)

    def exhaust(rewards: Rewards, last: Array, streak: Array) -> Rewards:
        exhausted = last & (streak >= limit)
        return Rewards(*(jnp.where(exhausted, 0.0, values) for values in rewards))

    return with_streaks(environment, exhaust)
