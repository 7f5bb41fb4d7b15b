"""Wheel: one safe arm, and one rich arm for each outer quadrant of the disc.

    context (x, y) uniform on the unit disc, d = sqrt(x^2 + y^2)
    arm 0 pays 1.2 everywhere; arms 1-4 pay 1.0, but 50 for the arm of the quadrant where d > delta

Rewards have a standard deviation of 0.01.

Paper: Riquelme, Tucker & Snoek (2018), "Deep Bayesian bandits showdown", with the constants of
Rotman & Wolf (2023), section 4; there the safe arm is the first, too.

Use it when exploration should be hard: with a large `delta` the rich rewards are rare. Not when the
relation should drift: see `rotating_wheel`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards

NUM_ARMS = 5
SAFE, ORDINARY, RICH = 1.2, 1.0, 50.0
DEVIATION = 0.01


class WheelState(NamedTuple):
    time: Array  # () int32


def wheel(*, delta: float = 0.5) -> Environment:
    """The Wheel: a safe arm, and a rich one per quadrant outside radius delta.

    Args:
        delta: Radius of the inner disc, where the safe arm is best.
    """
    check.probability(delta=delta)
    return wheel_seen_as(delta, lambda _, context: context)


def wheel_seen_as(delta: float, view: Callable[[Array, Array], Array]) -> Environment:
    """A Wheel whose quadrants are those of `view(time, context)`; the policy sees the context."""

    def init(key: Key) -> WheelState:
        return WheelState(jnp.zeros((), jnp.int32))

    def observe(key: Key, state: WheelState) -> Observation:
        radius_key, angle_key = jax.random.split(key)
        radius = jnp.sqrt(jax.random.uniform(radius_key))
        angle = 2 * jnp.pi * jax.random.uniform(angle_key)
        context = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        return Observation(context, jnp.ones(NUM_ARMS, bool))

    def rewards(key: Key, state: WheelState, context: Array) -> Rewards:
        mean = wheel_means(view(state.time, context), delta)
        return Rewards(mean + DEVIATION * jax.random.normal(key, (NUM_ARMS,)), mean)

    def advance(state: WheelState, arm: Array) -> WheelState:
        return WheelState(state.time + 1)

    spec = BanditSpec(NUM_ARMS, context_dim=2, reward_range=(0.0, RICH), noise=DEVIATION)
    return Environment(spec, init, observe, rewards, advance)


def wheel_means(context: Array, delta: float) -> Array:
    """The mean of every arm; quadrants (+,+), (+,-), (-,+), (-,-) belong to arms 1 to 4."""
    x, y = context
    rich_arm = 1 + 2 * (x <= 0).astype(jnp.int32) + (y <= 0).astype(jnp.int32)
    arms = jnp.arange(NUM_ARMS)
    outside = jnp.hypot(x, y) > delta
    ordinary = jnp.where(arms == 0, SAFE, ORDINARY)
    return jnp.where(outside & (arms == rich_arm), RICH, ordinary)
