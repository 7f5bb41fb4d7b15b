"""Exp3.S: Exp3 that gives every arm a share of the total weight, so that the best arm may change.

    p_k = (1 - gamma) w_k / sum_j w_j + gamma / K;   arm ~ p
    w_k <- w_k exp(gamma x_k / K) + (e alpha / K) sum_j w_j,
    x_k = x / p_k for the pulled arm, x the reward scaled to [0, 1], and 0 for the others

By default alpha = 1 / T, with T = 10,000 if the horizon is unknown, and
gamma = min(1, sqrt(K (segments ln(K T) + e) / ((e - 1) T))), or min(1, sqrt(K ln(K T) / T)) if the
number of segments is not given either. Rewards are clipped to `spec.reward_range` before they are
scaled. Weight is shared with every reward.

Paper: Auer, Cesa-Bianchi, Freund & Schapire (2002), "The nonstochastic multiarmed bandit problem",
section 8.

Differences from the paper: where some arms are unavailable, only the available ones are drawn, and
they share gamma. All arms take part in the sharing of weight.

Use it when the best arm changes a few times and rewards may react to the pulls: its regret is
measured against the best arm of each segment. Not when rewards are noise around drifting means:
`discounted_thompson` explores where it must, `exp3_s` everywhere. Not when the best arm never
changes.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.exp3 import (
    Exp3Ticket,
    beside_new,
    check_gamma,
    choose_by_weight,
    gains,
    normalised,
)
from driftbandits.numerics.horizon import horizon_of
from driftbandits.numerics.shares import share_of


class Exp3SState(NamedTuple):
    log_weights: Array  # (num_arms,) float32, the highest is 0


def exp3_s(
    spec: BanditSpec,
    *,
    gamma: float | None = None,
    alpha: float | None = None,
    segments: int | None = None,
) -> Policy:
    """Exponential weights for adversarial rewards whose best arm changes.

    Args:
        gamma: Share of exploration, and rate of learning; by default the formula with the horizon.
        alpha: How much weight is shared at each step; by default one over the horizon.
        segments: Number of periods with one best arm each, for the formula of gamma; by default
            unknown.
    """
    horizon = horizon_of(spec)
    if segments is not None:
        check.integer(segments=segments)
    if gamma is not None:
        check_gamma(gamma)
    rate = exp3_s_gamma(spec.num_arms, horizon, segments) if gamma is None else gamma
    sharing = 1 / horizon if alpha is None else alpha
    check.not_negative(alpha=sharing)

    def init(key: Key) -> Exp3SState:
        return Exp3SState(jnp.zeros(spec.num_arms))

    def act(key: Key, state: Exp3SState, observation: Observation) -> tuple[Decision, Exp3SState]:
        return choose_by_weight(key, state.log_weights, rate, observation.available), state

    def learn(state: Exp3SState, ticket: Exp3Ticket, reward: Array) -> Exp3SState:
        grown = state.log_weights + gains(
            ticket, share_of(reward, spec.reward_range), rate, spec.num_arms
        )
        total = jax.nn.logsumexp(state.log_weights)
        shared = total + jnp.log(jnp.float32(math.e * sharing / spec.num_arms))
        return Exp3SState(normalised(jnp.logaddexp(grown, shared)))

    def forget(old: Exp3SState, new: Exp3SState, is_new: Array) -> Exp3SState:
        return new._replace(log_weights=beside_new(old.log_weights, is_new))

    return Policy(init, act, learn, forget=forget)


def exp3_s_gamma(num_arms: int, horizon: int, segments: int | None) -> float:
    """Corollaries 8.2 and 8.3 of the paper."""
    logarithm = math.log(num_arms * horizon)
    if segments is None:
        return min(1.0, math.sqrt(num_arms * logarithm / horizon))
    inside = num_arms * (segments * logarithm + math.e) / ((math.e - 1) * horizon)
    return min(1.0, math.sqrt(inside))
