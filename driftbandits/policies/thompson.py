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
from driftbandits.parts.gamma import sample_log_gamma


class ThompsonState(NamedTuple):
    wins: Array  # (num_arms,) int32
    losses: Array  # (num_arms,) int32


class ThompsonTicket(NamedTuple):
    arm: Array  # () int32
    level: Array  # () float32, uniform; the coin comes up a win where the reward is above it


def thompson(spec: BanditSpec) -> Policy:
    """Thompson sampling with Beta posteriors; it believes that nothing drifts."""
    low, high = spec.reward_range

    def init(key: Key) -> ThompsonState:
        nothing = jnp.zeros(spec.num_arms, jnp.int32)
        return ThompsonState(nothing, nothing)

    def act(
        key: Key, state: ThompsonState, context: Array, available: Array
    ) -> tuple[Decision, ThompsonState]:
        require_some(available)
        odds_key, level_key = jax.random.split(key)
        a, b = (1 + count.astype(jnp.float32) for count in state)
        odds = sample_log_odds(odds_key, a, b)
        arm = jnp.argmax(jnp.where(available, odds, -jnp.inf)).astype(jnp.int32)
        ticket = ThompsonTicket(arm, jax.random.uniform(level_key))
        return Decision(arm, best_coin_probabilities(a, b, available), ticket), state

    def learn(state: ThompsonState, ticket: ThompsonTicket, reward: Array) -> ThompsonState:
        share = (jnp.clip(reward, low, high) - low) / (high - low)
        pulled = jnp.arange(spec.num_arms) == ticket.arm
        won = ticket.level < share
        return ThompsonState(state.wins + (pulled & won), state.losses + (pulled & ~won))

    return Policy(init, act, learn)


def sample_log_odds(key: Key, a: Array, b: Array) -> Array:
    """log(theta / (1 - theta)), theta ~ Beta(a, b): near 1 float32 cannot tell thetas apart."""
    wins, losses = jnp.split(sample_log_gamma(key, jnp.concatenate([a, b])), 2)
    return wins - losses
