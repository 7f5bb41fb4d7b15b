"""Exponential weights that learn from the pulled arm alone: what the Exp3 family shares.

    p_k = (1 - gamma) w_k / sum_j w_j + gamma / A,   over the A available arms
    x' = x / p_a for the pulled arm a, x the reward scaled to [0, 1];   w_a *= exp(gamma x' / K)

Auer, Cesa-Bianchi, Freund & Schapire (2002), "The nonstochastic multiarmed bandit problem". Weights
are stored as logarithms with the highest at 0, so they never overflow; probabilities and updates
depend only on their ratios. The exponent is at most A / K <= 1, since p_a >= gamma / A.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Decision, Key
from driftbandits.numerics.arms import draw, softmax_probabilities, with_exploration
from driftbandits.numerics.made_again import probability_or_known


class Exp3Ticket(NamedTuple):
    arm: Array  # () int32
    probability: Array  # () float32, of this arm when it was chosen


def check_gamma(gamma: float) -> None:
    if not check.is_number(gamma) or not 0 < gamma <= 1:
        check.fail("gamma", "a number in (0, 1]", gamma)


def exp3_gamma(num_arms: int, horizon: int) -> float:
    """min(1, sqrt(K ln K / ((e - 1) T))): corollary 3.2 of the paper, for gains up to T."""
    return min(1.0, math.sqrt(num_arms * math.log(num_arms) / ((math.e - 1) * horizon)))


def choose_by_weight(key: Key, log_weights: Array, gamma: float, available: Array) -> Decision:
    """Draws an arm; the ticket of the decision is an `Exp3Ticket`."""
    by_weight = softmax_probabilities(log_weights, available)
    probabilities = with_exploration(by_weight, gamma, available)
    arm = draw(key, probabilities)
    chosen = jnp.arange(probabilities.size) == arm
    probability = probability_or_known(jnp.sum(jnp.where(chosen, probabilities, 0.0)))
    return Decision(arm, probabilities, Exp3Ticket(arm, probability))


def gains(ticket: Exp3Ticket, share: Array, gamma: float, num_arms: int) -> Array:
    """What the reward adds to each log weight."""
    pulled = jnp.arange(num_arms) == ticket.arm
    return jnp.where(pulled, gamma / num_arms * share / ticket.probability, 0.0)


def beside_new(old: Array, is_new: Array) -> Array:
    """Log weights in which new arms have 0, the logarithm of the mean weight of the others."""
    others = jnp.where(is_new, -jnp.inf, old)
    count = jnp.maximum(jnp.sum(~is_new), 1)
    mean = jax.nn.logsumexp(others) - jnp.log(count.astype(jnp.float32))
    return jnp.where(is_new, 0.0, jnp.where(jnp.any(is_new), old - mean, old))


def normalised(log_weights: Array) -> Array:
    """The same ratios, with the highest weight at 1."""
    return log_weights - jnp.max(log_weights)
