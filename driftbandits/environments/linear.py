"""Linear arms: the mean of each arm is linear in the context.

    x_t uniform on the unit sphere;   reward_k = theta_k' x_t + deviation * N(0, 1)
    theta_k uniform on the unit sphere, once per run

Each arm has its own coefficients.

Example: offers that suit one customer and not another, where tastes add up.

Paper: Li, Chu, Langford & Schapire (2010), "A contextual-bandit approach to personalized news
article recommendation", the disjoint model.

Use it as the problem with contexts and without drift. Not to test forgetting: see
`rotating_linear` and `flipping_linear`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards, State


class LinearState(NamedTuple):
    theta: Array  # (num_arms, context_dim) float32
    time: Array  # () int32


def linear(*, num_arms: int = 10, context_dim: int = 5, deviation: float = 0.1) -> Environment:
    """Arms whose means are linear in a context on the unit sphere.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms, context_dim=context_dim)
    check.positive(deviation=deviation)
    init = drawn_coefficients(num_arms, context_dim)
    return linear_arms(num_arms, context_dim, deviation, init, lambda state: state.theta)


def linear_arms(
    num_arms: int,
    context_dim: int,
    deviation: float,
    init: Callable[[Key], State],
    coefficients: Callable[[State], Array],
    era: Callable[[State], Array] | None = None,
) -> Environment:
    """Arms whose coefficients, of length one, follow from the state and its time."""

    def observe(key: Key, state: State) -> Observation:
        return Observation(on_sphere(key, (context_dim,)), jnp.ones(num_arms, bool))

    def rewards(key: Key, state: State, context: Array) -> Rewards:
        mean = jnp.sum(coefficients(state) * context, axis=1)
        return Rewards(mean + deviation * jax.random.normal(key, (num_arms,)), mean)

    def advance(state: State, arm: Array) -> State:
        return state._replace(time=state.time + 1)

    spec = BanditSpec(num_arms, context_dim, reward_range=(-1.0, 1.0), noise=deviation)
    return Environment(spec, init, observe, rewards, advance, era)


def drawn_coefficients(num_arms: int, context_dim: int) -> Callable[[Key], LinearState]:
    return lambda key: LinearState(on_sphere(key, (num_arms, context_dim)), jnp.int32(0))


def on_sphere(key: Key, shape: tuple[int, ...]) -> Array:
    """Points drawn uniformly from the unit sphere, one per row."""
    return unit(jax.random.normal(key, shape))


def unit(vectors: Array) -> Array:
    return vectors / jnp.sqrt(jnp.sum(vectors**2, axis=-1, keepdims=True))
