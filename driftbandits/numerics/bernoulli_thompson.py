"""Thompson sampling of Bernoulli arms: draw a mean from each Beta posterior, pull the highest.

Rewards other than 0 and 1 are clipped to their range, scaled to [0, 1] and turned into a win with
that probability: Agrawal & Goyal (2012), "Analysis of Thompson sampling", algorithm 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Decision, Key
from driftbandits.numerics.arms import require_some
from driftbandits.numerics.beta import best_bernoulli_probabilities
from driftbandits.numerics.gamma import sample_log_gamma
from driftbandits.numerics.made_again import arm_or_known
from driftbandits.numerics.shares import share_of


class Toss(NamedTuple):
    """The ticket of a pull whose reward will be turned into 0 or 1."""

    arm: Array  # () int32
    level: Array  # () float32, uniform; a scaled reward above it is a win


def choose_arm(key: Key, wins: Array, losses: Array, available: Array) -> Decision:
    """The arm whose mean, drawn from Beta(1 + wins, 1 + losses), is highest.

    Counts need not be whole numbers. The ticket of the decision is a `Toss`.
    """
    require_some(available)
    odds_key, level_key = jax.random.split(key)
    a, b = (1 + count.astype(jnp.float32) for count in (wins, losses))
    odds = sample_log_odds(odds_key, a, b)
    arm = arm_or_known(jnp.argmax(jnp.where(available, odds, -jnp.inf)).astype(jnp.int32))
    toss = Toss(arm, jax.random.uniform(level_key))
    return Decision(arm, best_bernoulli_probabilities(a, b, available), toss)


def sample_log_odds(key: Key, a: Array, b: Array) -> Array:
    """log(theta / (1 - theta)), theta ~ Beta(a, b): near 1 float32 cannot tell thetas apart."""
    wins, losses = jnp.split(sample_log_gamma(key, jnp.concatenate([a, b])), 2)
    return wins - losses


def is_won(toss: Toss, reward: Array, reward_range: tuple[float, float]) -> Array:
    """Whether this reward counts as a win."""
    return toss.level < share_of(reward, reward_range)
