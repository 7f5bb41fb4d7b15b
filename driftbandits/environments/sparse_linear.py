"""Sparse linear arms: only one number of the context matters, and its weight drifts.

    reward_k = cos(2 pi (t / period + phase_k)) x_t,j + deviation * N(0, 1)
    phase_k ~ U(0, 1) and the place j, the same for all arms, once per run

Contexts are those of `linear`.

Example: a customer's long record, of which one entry matters, in a way that changes over time.

Paper: Abbasi-Yadkori, Pal & Szepesvari (2012), "Online-to-confidence-set conversions and
application to sparse stochastic bandits".

Use it when most of the context should be noise. Not when all of it should matter: see `linear` and
`rotating_linear`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.environments.linear import linear_arms


class SparseLinearState(NamedTuple):
    place: Array  # () int32, of the number that matters
    phase: Array  # (num_arms,) float32, in turns
    time: Array  # () int32


def sparse_linear(
    *,
    num_arms: int = 10,
    context_dim: int = 8,
    period: int | None = 10_000,
    deviation: float = 0.1,
) -> Environment:
    """Linear arms that depend on one number of the context, with weights that drift.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context.
        period: Steps of one turn of the weights; none means no drift.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms, context_dim=context_dim)
    check.positive(deviation=deviation)
    if period is not None:
        check.integer(period=period)

    def init(key: Key) -> SparseLinearState:
        place_key, phase_key = jax.random.split(key)
        place = jax.random.randint(place_key, (), 0, context_dim)
        return SparseLinearState(place, jax.random.uniform(phase_key, (num_arms,)), jnp.int32(0))

    def coefficients(state: SparseLinearState) -> Array:
        turn = state.phase if period is None else (state.time % period) / period + state.phase
        weight = jnp.cos(2 * jnp.pi * turn)
        return jnp.where(jnp.arange(context_dim) == state.place, weight[:, None], 0.0)

    return linear_arms(num_arms, context_dim, deviation, init, coefficients)
