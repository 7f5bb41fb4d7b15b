"""The oracle: pulls the arm whose mean is highest now. Only a simulator can hand it the means.

On a world that pulls change it is greedy on its own trajectory, which is optimal where arms only
lose by being pulled (Levine, Crammer & Mannor, 2017) and the reference of the policy regret.
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
