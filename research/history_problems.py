"""Two problems in which the history tells what pays next, other than by pulls in a row."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss


def echo(num_arms: int = 5, high: float = 0.8, low: float = 0.4) -> Environment:
    """Coins; the best one is the neighbour of the arm pulled two steps ago."""

    def init(key: Key) -> Array:
        return jax.random.randint(key, (2,), 0, num_arms)  # the last arm but one, and the last

    def observe(key: Key, arms: Array) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, arms: Array, context: Array) -> Rewards:
        best = (arms[0] + 1) % num_arms
        return toss(key, jnp.where(jnp.arange(num_arms) == best, high, low))

    def advance(arms: Array, arm: Array) -> Array:
        return jnp.stack([arms[1], arm])

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)


class RhythmState(NamedTuple):
    cycle: Array  # (num_arms + 1,) int32, the best arm of every beat
    beat: Array  # () int32


def rhythm(num_arms: int = 5, high: float = 0.8, low: float = 0.3) -> Environment:
    """Coins; another one is best at every step, in a cycle of all arms and one of them again."""

    def init(key: Key) -> RhythmState:
        order = jax.random.permutation(key, num_arms)
        return RhythmState(jnp.append(order, order[num_arms // 2]), jnp.int32(0))

    def observe(key: Key, state: RhythmState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: RhythmState, context: Array) -> Rewards:
        best = state.cycle[state.beat]
        return toss(key, jnp.where(jnp.arange(num_arms) == best, high, low))

    def advance(state: RhythmState, arm: Array) -> RhythmState:
        return state._replace(beat=(state.beat + 1) % (num_arms + 1))

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)
