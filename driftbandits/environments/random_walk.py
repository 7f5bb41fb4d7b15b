"""Random walk: Bernoulli arms whose means drift all the time.

    theta_k(0) ~ U(0, 1);   theta_k(t + 1) = reflect(theta_k(t) + step * N(0, 1))   into [0, 1]

The default step of 0.01 moves a mean by about 0.1 in 100 steps; after some 2000 steps nothing is
left of where it was.

Examples: tastes, prices or loads that never settle.

Paper: Slivkins & Upfal (2008), "Adapting to a changing environment: the Brownian restless bandits".

Use it when drift should be steady and without a pattern. Not when there should be calm periods: see
`abrupt` or `shocks`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.numerics.random_keys import key_at


class RandomWalkState(NamedTuple):
    theta: Array  # (num_arms,) float32
    words: Array  # (2,) uint32, of the key that all steps come from
    time: Array  # () int32


def random_walk(*, num_arms: int = 10, step: float = 0.01) -> Environment:
    """Bernoulli arms whose means do a random walk, reflected at 0 and 1.

    Args:
        num_arms: Number of arms.
        step: Standard deviation of a mean's move from one step to the next.
    """
    check.integer(num_arms=num_arms)
    check.not_negative(step=step)

    def init(key: Key) -> RandomWalkState:
        own, later = jax.random.split(key)
        theta = jax.random.uniform(own, (num_arms,))
        return RandomWalkState(theta, jax.random.key_data(later), jnp.int32(0))

    def observe(key: Key, state: RandomWalkState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: RandomWalkState, context: Array) -> Rewards:
        return toss(key, state.theta)

    def advance(state: RandomWalkState, arm: Array) -> RandomWalkState:
        time = state.time + 1
        moves = step * jax.random.normal(key_at(state.words, time), (num_arms,))
        return RandomWalkState(reflect(state.theta + moves), state.words, time)

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)


def reflect(value: Array) -> Array:
    """Reflects a value at 0 and 1 into [0, 1]."""
    return 1 - jnp.abs(1 - value % 2)
