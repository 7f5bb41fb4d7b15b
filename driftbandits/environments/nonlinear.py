"""Nonlinear arms: the means are smooth functions of the context, far from linear, and may drift.

    x_t uniform in the cube [-1, 1]^context_dim;   reward_k = mean_k(x_t, t) + deviation * N(0, 1)
    mean_k(x, t) = sigmoid(2 (cos(a_t) f_k(x) + sin(a_t) g_k(x)))
    f_k(x) = sqrt(2 / 20) sum_m sin(w_km' x + b_km)
    w_km ~ N(0, frequency^2 I),   b_km ~ U(0, 2 pi),   m = 1, ..., 20

g_k is another such function; both are drawn once per run. They are nearly draws of a Gaussian
process with variance one. The angle a_t is 0, or 2 pi t / period, or jumps by a quarter turn every
`every` steps. Time counts from 0, and every jump begins an era.

Example: customers whose tastes do not add up, where what suits the young and rich may suit neither
the young nor the rich.

Paper: Rahimi & Recht (2007), "Random features for large-scale kernel machines", for the functions.

Use it when linear models should not be enough. Not when they should be: see `linear`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards

WAVES = 20  # in one function


class NonlinearState(NamedTuple):
    waves: Array  # (2, num_arms, WAVES, context_dim) float32
    shifts: Array  # (2, num_arms, WAVES) float32
    time: Array  # () int32


def nonlinear(
    *,
    num_arms: int = 5,
    context_dim: int = 3,
    frequency: float = 2.0,
    period: int | None = None,
    every: int | None = None,
    deviation: float = 0.1,
) -> Environment:
    """Arms whose means are random smooth functions of a context in a cube.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context.
        frequency: How much the functions wind; they are alike within about its inverse.
        period: Steps in which a function turns into another one, the opposites of both, and back;
            by default never.
        every: Steps after which there is a quarter of such a turn at once; by default never.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms, context_dim=context_dim)
    check.positive(frequency=frequency, deviation=deviation)
    angle = angle_over_time(period, every)

    def init(key: Key) -> NonlinearState:
        waves_key, shifts_key = jax.random.split(key)
        shape = (2, num_arms, WAVES)
        waves = frequency * jax.random.normal(waves_key, (*shape, context_dim))
        shifts = 2 * jnp.pi * jax.random.uniform(shifts_key, shape)
        return NonlinearState(waves, shifts, jnp.int32(0))

    def observe(key: Key, state: NonlinearState) -> Observation:
        context = jax.random.uniform(key, (context_dim,), minval=-1.0, maxval=1.0)
        return Observation(context, jnp.ones(num_arms, bool))

    def rewards(key: Key, state: NonlinearState, context: Array) -> Rewards:
        sines = jnp.sin(jnp.sum(state.waves * context, axis=-1) + state.shifts)
        first, second = (2 / WAVES) ** 0.5 * jnp.sum(sines, axis=-1)
        turn = angle(state.time)
        mean = jax.nn.sigmoid(2 * (jnp.cos(turn) * first + jnp.sin(turn) * second))
        return Rewards(mean + deviation * jax.random.normal(key, (num_arms,)), mean)

    def advance(state: NonlinearState, arm: Array) -> NonlinearState:
        return state._replace(time=state.time + 1)

    era = None if every is None else lambda state: state.time // every
    spec = BanditSpec(num_arms, context_dim, noise=deviation)
    return Environment(spec, init, observe, rewards, advance, era)


def angle_over_time(period: Any, every: Any) -> Callable[[Array], Array]:
    if period is not None and every is not None:
        check.fail("every", "none where there is a period", every)
    if period is not None:
        check.integer(period=period)
        return lambda time: 2 * jnp.pi * ((time % period) / period)
    if every is not None:
        check.integer(every=every)
        return lambda time: jnp.pi / 2 * (time // every % 4)
    return lambda _: jnp.float32(0)
