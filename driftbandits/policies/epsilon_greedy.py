"""Epsilon-greedy: the arm that has paid best so far, and sometimes a random one.

    P(arm) = (1 - epsilon) [arm is the best available] + epsilon / (number of available arms)
    best: the highest value;   value_a <- value_a + step * (reward - value_a)
    step = 1 / pulls_a (the sample mean), or a constant `rate`

An arm without a reward counts as the best one, and its first reward becomes its value, so there is
no initial value to guess. Ties are shared.

Paper: Sutton & Barto (2018), "Reinforcement learning: an introduction", chapter 2.

Use it as a simple baseline, or when every arm needs a minimum probability; with a rate of about 0.1
it follows drift. Not when long-term regret matters: a constant epsilon costs a fixed share of the
pulls for ever.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities, with_exploration


class EpsilonGreedyState(NamedTuple):
    pulls: Array  # (num_arms,) int32
    worth: Array  # (num_arms,) float32, sum of the rewards; with a rate the value


def epsilon_greedy(spec: BanditSpec, *, epsilon: float = 0.1, rate: float | None = None) -> Policy:
    """The best arm so far, or with a small probability a random one.

    Args:
        epsilon: Probability of a random available arm instead of the best one.
        rate: Constant step towards each reward, in (0, 1], which tracks drift; by default the
            sample mean is used.
    """
    check.probability(epsilon=epsilon)
    if rate is not None and (not check.is_number(rate) or not 0 < rate <= 1):
        check.fail("rate", "a number in (0, 1], or none", rate)

    def init(key: Key) -> EpsilonGreedyState:
        return EpsilonGreedyState(jnp.zeros(spec.num_arms, jnp.int32), jnp.zeros(spec.num_arms))

    def act(
        key: Key, state: EpsilonGreedyState, observation: Observation
    ) -> tuple[Decision, EpsilonGreedyState]:
        # A quotient of sums, unlike a mean updated step by step, keeps ties of 0-1 rewards exact.
        value = state.worth / state.pulls if rate is None else state.worth
        greedy = greedy_probabilities(
            jnp.where(state.pulls == 0, jnp.inf, value), observation.available
        )
        probabilities = with_exploration(greedy, epsilon, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: EpsilonGreedyState, arm: Array, reward: Array) -> EpsilonGreedyState:
        pulled = jnp.arange(spec.num_arms) == arm
        if rate is None:
            change = jnp.broadcast_to(reward, pulled.shape)
        else:
            change = jnp.where(state.pulls == 0, 1.0, rate) * (reward - state.worth)
        worth = state.worth + jnp.where(pulled, change, 0.0)
        return EpsilonGreedyState(count_pull(state.pulls, arm), worth)

    return Policy(init, act, learn)
