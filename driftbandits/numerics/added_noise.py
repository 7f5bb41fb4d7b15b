"""Noise on top of the rewards of an environment."""

from collections.abc import Callable

import jax
from jax import Array

from driftbandits.core import Environment, Key, Rewards, State


def with_noise(
    environment: Environment, deviation: float, draw: Callable[[Key, tuple[int, ...]], Array]
) -> Environment:
    """Adds what `draw` draws, of this standard deviation, to the sampled rewards."""
    spec = environment.spec
    low, high = spec.reward_range
    spec = spec._replace(
        reward_range=(low - 2 * deviation, high + 2 * deviation),
        noise=(spec.noise**2 + deviation**2) ** 0.5,
    )

    def rewards(key: Key, state: State, context: Array) -> Rewards:
        inner_key, own_key = jax.random.split(key)
        sampled, mean = environment.rewards(inner_key, state, context)
        return Rewards(sampled + draw(own_key, mean.shape), mean)

    return environment._replace(spec=spec, rewards=rewards)
