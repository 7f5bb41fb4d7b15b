"""Gaussian noise on the rewards of any environment.

    reward_k + deviation * N(0, 1);   the means stay

`spec.noise` becomes sqrt(noise^2 + deviation^2), and `spec.reward_range` is wider by two deviations
on both sides.

It stands for a meter that is not exact, or for a reward of which only an estimate is known.
"""

import jax
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Rewards, State


def noisy(environment: Environment, deviation: float) -> Environment:
    """Adds Gaussian noise of this standard deviation to the sampled rewards."""
    check.not_negative(noisy=deviation)
    spec = environment.spec
    low, high = spec.reward_range
    spec = spec._replace(
        reward_range=(low - 2 * deviation, high + 2 * deviation),
        noise=(spec.noise**2 + deviation**2) ** 0.5,
    )

    def rewards(key: Key, state: State, context: Array) -> Rewards:
        inner_key, own_key = jax.random.split(key)
        sampled, mean = environment.rewards(inner_key, state, context)
        return Rewards(sampled + deviation * jax.random.normal(own_key, mean.shape), mean)

    return environment._replace(spec=spec, rewards=rewards)
