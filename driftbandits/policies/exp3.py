"""Exp3: exponential weights for rewards that an adversary may choose.

    p_k = (1 - gamma) w_k / sum_j w_j + gamma / K;   arm ~ p
    w_a *= exp(gamma x / (K p_a)) for the pulled arm a, x the reward scaled to [0, 1]

The default gamma is that of corollary 3.2, min(1, sqrt(K ln K / ((e - 1) T))), with T = 10,000 if
the horizon is unknown. Rewards are clipped to `spec.reward_range` before they are scaled. A reward
is divided by the probability that its arm had when it was chosen, however late it arrives.

Paper: Auer, Cesa-Bianchi, Freund & Schapire (2002), "The nonstochastic multiarmed bandit problem".

Differences from the paper: where some arms are unavailable, only the available ones are drawn, and
they share gamma. An arm gains nothing while it is unavailable, so it comes back behind the others.

Use it when rewards may react to the pulls, or nothing can be assumed about them: it is as good as
the best single arm in hindsight, up to about 2.6 sqrt(K T ln K). Not when the best arm changes: its
weights never forget (`exp3_s` and `rexp3` do). Not when rewards are plain noise around constant
means, where `thompson` loses far less.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.exp3 import (
    Exp3Ticket,
    beside_new,
    check_gamma,
    choose_by_weight,
    exp3_gamma,
    gains,
    normalised,
)
from driftbandits.numerics.horizon import horizon_of
from driftbandits.numerics.shares import share_of


class Exp3State(NamedTuple):
    log_weights: Array  # (num_arms,) float32, the highest is 0


def exp3(spec: BanditSpec, *, gamma: float | None = None) -> Policy:
    """Exponential weights for adversarial rewards; as good as the best single arm.

    Args:
        gamma: Share of exploration, and rate of learning; by default the formula with the horizon.
    """
    if gamma is not None:
        check_gamma(gamma)
    rate = exp3_gamma(spec.num_arms, horizon_of(spec)) if gamma is None else gamma

    def init(key: Key) -> Exp3State:
        return Exp3State(jnp.zeros(spec.num_arms))

    def act(key: Key, state: Exp3State, observation: Observation) -> tuple[Decision, Exp3State]:
        return choose_by_weight(key, state.log_weights, rate, observation.available), state

    def learn(state: Exp3State, ticket: Exp3Ticket, reward: Array) -> Exp3State:
        share = share_of(reward, spec.reward_range)
        return Exp3State(normalised(state.log_weights + gains(ticket, share, rate, spec.num_arms)))

    def forget(old: Exp3State, new: Exp3State, is_new: Array) -> Exp3State:
        return new._replace(log_weights=beside_new(old.log_weights, is_new))

    return Policy(init, act, learn, forget=forget)
