"""A limit on pulls in a row, for any environment.

After `limit` pulls of one arm in a row its reward is 0, until another arm is pulled. Its mean is
then 0 too, so the regret compares with the best arm that is not exhausted, as long as one of the
others is worth more than nothing (else doing so pays best, and is what the regret compares with).

Rotman & Wolf (2023), section 4, "Time Dependent Multi-Arm Bandit with Correlative Arms".
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Rewards
from driftbandits.numerics.streak_rewards import with_streaks


def max_consecutive(environment: Environment, limit: int) -> Environment:
    """An arm pays nothing after this many pulls in a row, until another arm is pulled."""
    check.integer(max_consecutive=limit)

    def exhaust(rewards: Rewards, last: Array, streak: Array) -> Rewards:
        exhausted = last & (streak >= limit)
        return Rewards(*(jnp.where(exhausted, 0.0, values) for values in rewards))

    return with_streaks(environment, exhaust)
