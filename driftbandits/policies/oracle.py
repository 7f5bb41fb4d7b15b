"""Oracle: pulls the arm whose mean is highest now, which only a simulator can know.

    arm = argmax mean_k(now)

Where pulls change the means it is greedy along its own trajectory. That is optimal where arms only
lose by being pulled, and it is the reference of the policy regret.

Paper: Levine, Crammer & Mannor (2017), "Rotting bandits".

Use it as a reference for what is achievable. Not when means change with the pulls and patience
pays: it always takes the arm that is best at the moment. It cannot run in an agent or in the
service, where nobody knows the means.

It ignores the context.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities


def oracle(spec: BanditSpec) -> Policy:
    """The best arm of the moment; it sees the true means."""

    def init(key: Key) -> Array:
        return jnp.zeros(0)

    def act(key: Key, state: Array, observation: Observation) -> tuple[Decision, Array]:
        probabilities = greedy_probabilities(observation.context, observation.available)
        return Decision(draw(key, probabilities), probabilities, ()), state

    def learn(state: Array, ticket: tuple[()], reward: Array) -> Array:
        return state

    return Policy(init, act, learn, sees_means=True)
