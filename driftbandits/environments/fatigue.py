"""Fatigue: the arms of any environment tire while they are pulled in a row.

    mean_k * factor^n,   n the pulls of arm k in a row just before;   n = 0 for all other arms

One pull of another arm is a full rest. The sampled rewards move with the mean and keep their noise:
reward_k - mean_k + mean_k factor^n. So they may fall below `spec.reward_range` by what the mean has
lost; that range is the range of the means, and 0 is always in it.

Examples: a muscle, or an audience that hears the same thing again.

Paper: Laforgue, Clerici, Cesa-Bianchi & Gilad-Bachrach (2022), "A last switch dependent analysis of
satiation and seasonality in bandits", of which it is a case.

Use it when repetition should pay less and less. Not when it should suddenly pay nothing: see
`max_consecutive`.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Rewards
from driftbandits.numerics.streak_rewards import with_streaks


def fatigue(environment: Environment, factor: float) -> Environment:
    """An arm's mean is multiplied by this factor for every pull of it in a row just before.

    Args:
        environment: The environment to change.
        factor: A number in [0, 1].
    """
    check.probability(fatigue=factor)

    def tire(rewards: Rewards, last: Array, streak: Array) -> Rewards:
        sampled, mean = rewards
        left = jnp.float32(factor) ** streak.astype(jnp.float32)
        tired = jnp.where(last, left, 1.0) * mean
        return Rewards(sampled - mean + tired, tired)

    return with_streaks(environment, tire)
