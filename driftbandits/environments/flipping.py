"""Flipping arms: Bernoulli arms whose best and worst swap their means again and again.

    theta_k ~ U(0, 1) once per run;   in steps every, ..., 2 every - 1, and in every second
    stretch of that length after that, the largest and the smallest theta are swapped

Steps count from 0.

Examples: day and night, weekdays and weekends, fashions that come back.

Use it when you want the worst case for a policy that never forgets: the best arm so far becomes the
worst. Not when changes should not come back: see `abrupt`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss


class FlippingState(NamedTuple):
    theta: Array  # (num_arms,) float32, before the first swap
    time: Array  # () int32


def flipping(*, num_arms: int = 10, every: int = 1000) -> Environment:
    """Bernoulli arms whose best and worst swap their means at regular times.

    Args:
        num_arms: Number of arms.
        every: Steps between two swaps.
    """
    check.integer(num_arms=num_arms, every=every)

    def init(key: Key) -> FlippingState:
        return FlippingState(jax.random.uniform(key, (num_arms,)), jnp.int32(0))

    def observe(key: Key, state: FlippingState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: FlippingState, context: Array) -> Rewards:
        return toss(key, jnp.where(era(state) % 2 == 1, swapped(state.theta), state.theta))

    def advance(state: FlippingState, arm: Array) -> FlippingState:
        return FlippingState(state.theta, state.time + 1)

    def era(state: FlippingState) -> Array:
        return state.time // every

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance, era)


def swapped(theta: Array) -> Array:
    """The means with the best and the worst swapped."""
    arms = jnp.arange(theta.size)
    best, worst = jnp.argmax(theta), jnp.argmin(theta)
    return jnp.where(arms == best, jnp.min(theta), jnp.where(arms == worst, jnp.max(theta), theta))
