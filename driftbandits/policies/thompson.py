"""Thompson sampling: pulls the arm whose sampled mean is highest, for rewards of 0 or 1.

    theta_k ~ Beta(1 + wins_k, 1 + losses_k);   arm = argmax theta

Other rewards are clipped to `spec.reward_range`, scaled to [0, 1] and turned into a win with that
probability: Agrawal & Goyal (2012), "Analysis of Thompson sampling", algorithm 2.

Paper: Thompson (1933), "On the likelihood that one unknown probability exceeds another"; Chapelle &
Li (2011), "An empirical evaluation of Thompson sampling".

Use it when rewards do not drift: few policies lose less, and there is nothing to tune. Not when
they do: its counts only grow, so it adapts ever more slowly; `discounted_thompson` forgets.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.bernoulli_thompson import Toss, choose_arm, is_won


class ThompsonState(NamedTuple):
    wins: Array  # (num_arms,) int32
    losses: Array  # (num_arms,) int32


def thompson(spec: BanditSpec) -> Policy:
    """Thompson sampling with Beta posteriors; it assumes that nothing drifts."""

    def init(key: Key) -> ThompsonState:
        nothing = jnp.zeros(spec.num_arms, jnp.int32)
        return ThompsonState(nothing, nothing)

    def act(
        key: Key, state: ThompsonState, observation: Observation
    ) -> tuple[Decision, ThompsonState]:
        return choose_arm(key, *state, observation.available), state

    def learn(state: ThompsonState, toss: Toss, reward: Array) -> ThompsonState:
        pulled = jnp.arange(spec.num_arms) == toss.arm
        won = is_won(toss, reward, spec.reward_range)
        return ThompsonState(state.wins + (pulled & won), state.losses + (pulled & ~won))

    return Policy(init, act, learn)
