"""Rexp3: Exp3 that restarts after every batch of pulls.

    batch = ceil((K ln K)^(1/3) (T / V)^(2/3));   gamma = min(1, sqrt(K ln K / ((e - 1) batch)))
    Exp3 with this gamma, all weights equal again at the start of every batch

V bounds the variation sum_t max_k |mu_k(t + 1) - mu_k(t)| of the means, in widths of the reward
range. T is the horizon, or 10,000 if it is unknown. Rewards are clipped to `spec.reward_range` and
scaled to [0, 1]. A batch is a number of decisions; a reward that arrives after its batch is not
counted.

Paper: Besbes, Gur & Zeevi (2014), "Stochastic multi-armed-bandit problem with non-stationary
rewards".

Differences from the paper: the default V = 1 is ours. Over 10,000 pulls of ten arms it gives
batches of 1321 pulls. The formula guards against the worst drift; for a smooth one a lower V may do
better. Where some arms are unavailable, only the available ones are drawn, and they share gamma.

Use it when means drift within a known budget, in whatever way, and a guarantee matters more than
the usual regret. Not when batches are short: it explores from scratch in each, and with many arms
does little else; `discounted_thompson` then loses less. Not when rewards arrive later than a batch.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
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


class Rexp3State(NamedTuple):
    log_weights: Array  # (num_arms,) float32, the highest is 0
    batch: Array  # () int32, batches before this one
    left: Array  # () int32, decisions until the next batch


class Rexp3Ticket(NamedTuple):
    pull: Exp3Ticket
    batch: Array  # () int32


def rexp3(
    spec: BanditSpec,
    *,
    variation: float = 1.0,
    batch: int | None = None,
    gamma: float | None = None,
) -> Policy:
    """Exponential weights that restart in batches, for means that drift within a budget.

    Args:
        variation: V, how far the means move in total, in widths of the reward range.
        batch: Pulls between two restarts; by default the formula with V and the horizon.
        gamma: Share of exploration, and rate of learning; by default the formula with the batch.
    """
    check.positive(variation=variation)
    length = batch_length(spec.num_arms, horizon_of(spec), variation) if batch is None else batch
    check.integer(batch=length)
    if gamma is not None:
        check_gamma(gamma)
    rate = exp3_gamma(spec.num_arms, length) if gamma is None else gamma

    def init(key: Key) -> Rexp3State:
        return Rexp3State(jnp.zeros(spec.num_arms), jnp.int32(0), jnp.int32(length))

    def act(key: Key, state: Rexp3State, observation: Observation) -> tuple[Decision, Rexp3State]:
        state = next_batch(state, length)
        decision = choose_by_weight(key, state.log_weights, rate, observation.available)
        ticket = Rexp3Ticket(decision.ticket, state.batch)
        return decision._replace(ticket=ticket), state._replace(left=state.left - 1)

    def learn(state: Rexp3State, ticket: Rexp3Ticket, reward: Array) -> Rexp3State:
        share = share_of(reward, spec.reward_range)
        new = jnp.where(
            ticket.batch == state.batch, gains(ticket.pull, share, rate, spec.num_arms), 0.0
        )
        return state._replace(log_weights=normalised(state.log_weights + new))

    def forget(old: Rexp3State, new: Rexp3State, is_new: Array) -> Rexp3State:
        return new._replace(log_weights=beside_new(old.log_weights, is_new))

    return Policy(init, act, learn, forget=forget)


def batch_length(num_arms: int, horizon: int, variation: float) -> int:
    """The formula above, from 1 to the horizon."""
    length = (num_arms * math.log(num_arms)) ** (1 / 3) * (horizon / variation) ** (2 / 3)
    return max(1, math.ceil(min(length, horizon)))


def next_batch(state: Rexp3State, length: int) -> Rexp3State:
    """Forgets everything when a batch is over."""
    over = state.left == 0
    return Rexp3State(
        jnp.where(over, 0.0, state.log_weights),
        state.batch + over,
        jnp.where(over, length, state.left),
    )
