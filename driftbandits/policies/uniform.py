"""Uniform: every available arm with the same probability.

    P(arm) = 1 / (number of available arms)

Use it as a baseline, or to collect unbiased data. Not when rewards matter.

It ignores the context.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, uniform_probabilities


def uniform(spec: BanditSpec) -> Policy:
    """Any available arm, whatever the rewards."""

    def init(key: Key) -> Array:
        return jnp.zeros(0)

    def act(key: Key, state: Array, observation: Observation) -> tuple[Decision, Array]:
        probabilities = uniform_probabilities(observation.available)
        return Decision(draw(key, probabilities), probabilities, ()), state

    def learn(state: Array, ticket: tuple[()], reward: Array) -> Array:
        return state

    return Policy(init, act, learn)
