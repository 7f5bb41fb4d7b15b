"""Shared linear arms: what an arm pays follows from its features and the context, by one rule.

    reward_k = x_t' Theta(t) a_k + own * q_k + deviation * N(0, 1)

The contexts x_t and the features a_k are uniform on unit spheres, a_k once per run. Theta has
orthonormal columns (or rows, if the context is shorter), and q_k is uniform on [-1, 1]. With
`period`, Theta turns: pairs of context numbers rotate, one turn in `period` steps. With `every`, it
changes its sign every so many steps. What is learned about one arm tells about arms like it, unless
`own` is large.

Example: prices, articles or models that are described by a few numbers.

Paper: Li, Chu, Langford & Schapire (2010), "A contextual-bandit approach to personalized news
article recommendation", the hybrid model.

Use it to see what the features of arms are worth, with and without drift. Not when arms come and
go: see `articles`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.linear import on_sphere


class SharedLinearState(NamedTuple):
    theta: Array  # (context_dim, arm_dim) float32
    arms: Array  # (num_arms, arm_dim) float32
    quality: Array  # (num_arms,) float32
    time: Array  # () int32


def shared_linear(
    *,
    num_arms: int = 20,
    context_dim: int = 4,
    arm_dim: int = 4,
    own: float = 0.0,
    deviation: float = 0.1,
    period: int | None = None,
    every: int | None = None,
) -> Environment:
    """Arms with features that share one bilinear model, which may rotate or flip.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context.
        arm_dim: Features of an arm.
        own: How much the mean of an arm differs from what its features say, at most.
        deviation: Standard deviation of the rewards.
        period: Steps of one full turn of the model; by default it does not turn.
        every: Steps between two flips of the model; by default it does not flip.
    """
    check.integer(num_arms=num_arms, context_dim=context_dim, arm_dim=arm_dim)
    check.not_negative(own=own)
    check.positive(deviation=deviation)
    if period is not None:
        check.integer(period=period)
        check.integer(context_dim=context_dim, at_least=2)
    if every is not None:
        check.integer(every=every)

    def init(key: Key) -> SharedLinearState:
        theta_key, arms_key, quality_key = jax.random.split(key, 3)
        return SharedLinearState(
            orthonormal(theta_key, context_dim, arm_dim),
            on_sphere(arms_key, (num_arms, arm_dim)),
            jax.random.uniform(quality_key, (num_arms,), minval=-1.0),
            jnp.int32(0),
        )

    def observe(key: Key, state: SharedLinearState) -> Observation:
        context = on_sphere(key, (context_dim,))
        return Observation(context, jnp.ones(num_arms, bool), state.arms)

    def rewards(key: Key, state: SharedLinearState, context: Array) -> Rewards:
        sign = 1.0 if every is None else jnp.where(era(state) % 2 == 1, -1.0, 1.0)
        seen = context if period is None else turned(context, state.time, period)
        mean = sign * (state.arms @ (seen @ state.theta)) + own * state.quality
        return Rewards(mean + deviation * jax.random.normal(key, (num_arms,)), mean)

    def advance(state: SharedLinearState, arm: Array) -> SharedLinearState:
        return state._replace(time=state.time + 1)

    def era(state: SharedLinearState) -> Array:
        return state.time // (every or 1)

    spec = BanditSpec(
        num_arms,
        context_dim,
        reward_range=(-1.0 - own, 1.0 + own),
        noise=deviation,
        arm_dim=arm_dim,
    )
    return Environment(spec, init, observe, rewards, advance, era if every else None)


def orthonormal(key: Key, rows: int, columns: int) -> Array:
    """A random matrix with orthonormal columns, or rows if there are fewer of them."""
    basis: list[Array] = []
    length, count = max(rows, columns), min(rows, columns)
    for vector in jax.random.normal(key, (count, length)):
        for other in basis:  # Gram-Schmidt
            vector = vector - jnp.sum(vector * other) * other
        basis.append(vector / jnp.sqrt(jnp.sum(vector**2)))
    found = jnp.stack(basis)
    return found if rows <= columns else found.T


def turned(context: Array, time: Array, period: int) -> Array:
    """The context with each pair of its numbers rotated; of an odd number the last one stays."""
    angle = 2 * jnp.pi * ((time % period) / period)
    pairs = context.size // 2
    first, second = context[:pairs], context[pairs : 2 * pairs]
    return jnp.concatenate(
        [
            jnp.cos(angle) * first - jnp.sin(angle) * second,
            jnp.sin(angle) * first + jnp.cos(angle) * second,
            context[2 * pairs :],
        ]
    )
