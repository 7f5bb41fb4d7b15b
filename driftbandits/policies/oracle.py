"""The oracle: pulls the arm whose mean is highest now. Only a simulator can hand it the means.

On a world that pulls change it is greedy on its own trajectory, which is optimal where arms only
lose by being pulled (Levine, Crammer & Mannor, 2017) and the reference of the policy regret.

Use it when a measure needs to know what could be had: it is told the means. Not when means move
with the pulls and patience pays: it takes the best arm of the moment only.

It ignores the context.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import draw, greedy_law


def oracle(spec: BanditSpec) -> Policy:
    """The best arm of the moment; it sees the means."""

    def init(key: Key) -> Array:
        return jnp.zeros(0)

    def act(key: Key, state: Array, means: Array, available: Array) -> tuple[Decision, Array]:
        law = greedy_law(means, available)
        return Decision(draw(key, law), law, ()), state

    def learn(state: Array, ticket: tuple[()], reward: Array) -> Array:
        return state

    return Policy(init, act, learn, sees_means=True)
