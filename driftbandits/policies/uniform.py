"""Uniform: every available arm with the same probability; the upper end of the scale of regret.

Use it when a comparison needs a mark to start from, or data without a slant are to be collected.
Not when rewards count.

It ignores the context.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import draw, uniform_law


def uniform(spec: BanditSpec) -> Policy:
    """Any available arm, whatever was paid."""

    def init(key: Key) -> Array:
        return jnp.zeros(0)

    def act(key: Key, state: Array, context: Array, available: Array) -> tuple[Decision, Array]:
        law = uniform_law(available)
        return Decision(draw(key, law), law, ()), state

    def learn(state: Array, ticket: tuple[()], reward: Array) -> Array:
        return state

    return Policy(init, act, learn)
