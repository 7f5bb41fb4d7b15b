"""Thompson sampling for coins: pull the arm whose sampled mean is highest.

    theta_k ~ Beta(1 + wins_k, 1 + losses_k);   arm = argmax theta

Thompson (1933); Chapelle & Li (2011), "An empirical evaluation of Thompson sampling". Other rewards
are clipped to `spec.reward_range`, scaled to [0, 1] and turned into a win by a toss of a coin with
that probability: Agrawal & Goyal (2012), "Analysis of Thompson sampling", algorithm 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import require_some
from driftbandits.parts.beta import best_coin_probabilities


class ThompsonState(NamedTuple):
    wins: Array  # (num_arms,) float32
    losses: Array  # (num_arms,) float32


class ThompsonTicket(NamedTuple):
    arm: Array  # () int32
    level: Array  # () float32, uniform; the coin comes up a win where the reward is above it


def thompson(spec: BanditSpec) -> Policy:
    """Thompson sampling with Beta posteriors; it believes that nothing drifts."""
    low, high = spec.reward_range

    def init(key: Key) -> ThompsonState:
        return ThompsonState(jnp.zeros(spec.num_arms), jnp.zeros(spec.num_arms))

    def act(
        key: Key, state: ThompsonState, context: Array, available: Array
    ) -> tuple[Decision, ThompsonState]:
        require_some(available)
        theta_key, level_key = jax.random.split(key)
        a, b = 1 + state.wins, 1 + state.losses
        theta = jax.random.beta(theta_key, a, b)
        arm = jnp.argmax(jnp.where(available, theta, -1.0)).astype(jnp.int32)
        ticket = ThompsonTicket(arm, jax.random.uniform(level_key))
        return Decision(arm, best_coin_probabilities(a, b, available), ticket), state

    def learn(state: ThompsonState, ticket: ThompsonTicket, reward: Array) -> ThompsonState:
        share = (jnp.clip(reward, low, high) - low) / (high - low)
        pulled = (jnp.arange(spec.num_arms) == ticket.arm).astype(jnp.float32)
        won = (ticket.level < share).astype(jnp.float32)
        return ThompsonState(state.wins + won * pulled, state.losses + (1 - won) * pulled)

    return Policy(init, act, learn)
