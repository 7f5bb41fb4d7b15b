"""Seasonal arms: Bernoulli arms whose means rise and fall, each with its own period.

    mean_k(t) = level_k + amplitude_k * sin(2 pi (t / period_k + phase_k))
    level_k ~ U(0.25, 0.75),   amplitude_k ~ U(0.1, 0.25),   phase_k ~ U(0, 1)   once per run
    log period_k ~ U(log shortest, log longest), rounded to a whole number

There is no common period, so the same situation does not return soon. Time counts from 0. An era
ends when another arm becomes the best.

Example: demand with daily, weekly and yearly cycles.

Paper: Chen, Wang & Wang (2023), "Learning and optimization with seasonal patterns", where arms have
unknown periods of their own.

Use it when arms should change at different speeds. Not when they should change together: see
`sinusoidal`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.numerics.eras import best_arm

LONGEST = 10**6  # float32 can still tell neighbouring steps apart


class SeasonalState(NamedTuple):
    level: Array  # (num_arms,) float32
    amplitude: Array  # (num_arms,) float32
    period: Array  # (num_arms,) int32
    phase: Array  # (num_arms,) float32, in turns
    time: Array  # () int32


def seasonal(*, num_arms: int = 10, shortest: int = 200, longest: int = 5000) -> Environment:
    """Bernoulli arms whose means follow sines, each with its own period.

    Args:
        num_arms: Number of arms.
        shortest: Steps of the shortest period that an arm may have.
        longest: Steps of the longest one.
    """
    check.integer(num_arms=num_arms, shortest=shortest)
    check.integer(longest=longest, at_least=shortest, at_most=LONGEST)

    def init(key: Key) -> SeasonalState:
        level, amplitude, season, phase = jax.random.uniform(key, (4, num_arms))
        period = shortest * (longest / shortest) ** season
        return SeasonalState(
            level=0.25 + 0.5 * level,
            amplitude=0.1 + 0.15 * amplitude,
            period=jnp.round(period).astype(jnp.int32),
            phase=phase,
            time=jnp.int32(0),
        )

    def means(state: SeasonalState) -> Array:
        turn = (state.time % state.period) / state.period + state.phase
        return state.level + state.amplitude * jnp.sin(2 * jnp.pi * turn)

    def observe(key: Key, state: SeasonalState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: SeasonalState, context: Array) -> Rewards:
        return toss(key, means(state))

    def advance(state: SeasonalState, arm: Array) -> SeasonalState:
        return state._replace(time=state.time + 1)

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance, best_arm(means))
