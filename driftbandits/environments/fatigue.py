"""Arms of any environment that tire while they are pulled in a row.

    mean_k * factor^n,   n the pulls of arm k in a row just before;   n = 0 for all other arms

The sampled rewards move with the mean and keep their noise: reward_k - mean_k + mean_k factor^n.
They may thus fall below `spec.reward_range` by what the mean has lost; that range, which holds 0
besides, is that of the means. One pull of another arm is a full rest.

A softer form of `max_consecutive`, and a case of Laforgue, Clerici, Cesa-Bianchi & Gilad-Bachrach
(2022), "A last switch dependent analysis of satiation and seasonality in bandits".

It stands for a voice, a muscle or an audience: less every time, until something else has its turn.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Observation, Rewards, State
from driftbandits.parts.eras import era_of_inner


class TiredState(NamedTuple):
    inner: State
    last: Array  # () int32, the arm pulled last; -1 before the first pull
    streak: Array  # () int32, its pulls in a row


def fatigue(environment: Environment, factor: float) -> Environment:
    """An arm's mean is multiplied by this factor for every pull of it in a row just before."""
    check.probability(fatigue=factor)
    low, high = environment.spec.reward_range
    spec = environment.spec._replace(reward_range=(min(low, 0.0), max(high, 0.0)))

    def init(key: Key) -> TiredState:
        return TiredState(environment.init(key), jnp.int32(-1), jnp.int32(0))

    def observe(key: Key, state: TiredState) -> Observation:
        return environment.observe(key, state.inner)

    def rewards(key: Key, state: TiredState, context: Array) -> Rewards:
        sampled, mean = environment.rewards(key, state.inner, context)
        left = jnp.float32(factor) ** state.streak.astype(jnp.float32)
        tired = jnp.where(jnp.arange(spec.num_arms) == state.last, left, 1.0) * mean
        return Rewards(sampled - mean + tired, tired)

    def advance(state: TiredState, arm: Array) -> TiredState:
        streak = jnp.where(arm == state.last, state.streak + 1, 1)
        return TiredState(environment.advance(state.inner, arm), arm, streak)

    return Environment(
        spec, init, observe, rewards, advance, era_of_inner(environment), environment.delay
    )
