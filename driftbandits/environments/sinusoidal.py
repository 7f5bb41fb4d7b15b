"""Sinusoidal arms: Bernoulli arms whose means rise and fall, one after the other.

    theta_k(t) = theta_k * |sin(2 pi t / period + 2 pi k / num_arms)|,   theta_k ~ U(0, 1) per run

Time and arms count from 0. An era ends when another arm becomes the best.

Paper: Rotman & Wolf (2023), section 4, "Time Dependent Multi-Arm Bandit".

Use it as the problem of smooth drift, where the best arm changes several times. Not when every arm
should have its own period: see `seasonal`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.numerics.eras import best_arm


class SinusoidalState(NamedTuple):
    theta: Array  # (num_arms,) float32
    time: Array  # () int32, modulo the period


def sinusoidal(*, num_arms: int = 10, period: int = 10_000) -> Environment:
    """Bernoulli arms whose means follow a rectified sine, each with its own phase.

    Args:
        num_arms: Number of arms.
        period: Steps of one turn of the sine (the means repeat after half of it).
    """
    check.integer(num_arms=num_arms, period=period)
    phases = np.arange(num_arms, dtype=np.float32) / np.float32(num_arms)

    def init(key: Key) -> SinusoidalState:
        return SinusoidalState(jax.random.uniform(key, (num_arms,)), jnp.zeros((), jnp.int32))

    def observe(key: Key, state: SinusoidalState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: SinusoidalState, context: Array) -> Rewards:
        return toss(key, means(state))

    def means(state: SinusoidalState) -> Array:
        turn = state.time / period + phases
        return state.theta * jnp.abs(jnp.sin(2 * jnp.pi * turn))

    def advance(state: SinusoidalState, arm: Array) -> SinusoidalState:
        return state._replace(time=(state.time + 1) % period)

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance, best_arm(means))
