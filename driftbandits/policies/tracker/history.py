"""What was pulled before, as features: for rewards that depend on the history.

    s   <- tanh(W s + u_arm + u_r rho)                  after every pull: a fixed random network
    z_k  = (s, exp(-(rest_k - 1) / length) for three lengths, streak_k / 10, 1)

rho is the last reward in deviations from the mean, rest_k counts the steps since the last pull of
arm k, and streak_k is how often in a row it was pulled last. Jaeger (2001), "The echo state
approach to analysing and training recurrent neural networks".
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import Key
from driftbandits.policies.tracker.streaks import Streaks

SPREAD = 0.8  # of the weights between units, times the square root of their number
LOUDEST = 3.0  # deviations of a reward from the mean
LOUDNESS = 0.5  # of a reward's weights
LENGTHS = np.array([1.0, 4.0, 16.0], np.float32)  # of rests, in steps
LONGEST, PER_STREAK = 20.0, 0.1
OWN = len(LENGTHS) + 1  # features of an arm's own history


class History(NamedTuple):
    inner: Array  # (units, units) float32
    by_arm: Array  # (units, num_arms) float32
    by_reward: Array  # (units,) float32
    units: Array  # (units,) float32
    reward: Array  # () float32, the last one, in deviations from the mean


def new_history(key: Key, units: int, num_arms: int) -> History:
    inner, by_arm, by_reward = jax.random.split(key, 3)
    return History(
        inner=jax.random.normal(inner, (units, units)) * (SPREAD / units**0.5),
        by_arm=jax.random.normal(by_arm, (units, num_arms)),
        by_reward=LOUDNESS * jax.random.normal(by_reward, (units,)),
        units=jnp.zeros(units),
        reward=jnp.zeros(()),
    )


def moved_on(history: History, streaks: Streaks) -> History:
    """After the last pull, if there was one."""
    arm = jnp.arange(history.by_arm.shape[1]) == streaks.arm
    heard = jnp.sum(history.by_arm, axis=1, where=arm) + history.by_reward * history.reward
    units = jnp.tanh(jnp.sum(history.inner * history.units, axis=1) + heard)
    return history._replace(units=jnp.where(streaks.arm >= 0, units, history.units))


def history_features(
    history: History, streaks: Streaks, last_pull_time: Array | None, time: Array
) -> Array:
    """(num_arms, units + OWN + 1)"""
    assert last_pull_time is not None
    arms = last_pull_time.size
    rest = (time - last_pull_time - 1).astype(jnp.float32)
    rested = jnp.where(last_pull_time[:, None] > 0, jnp.exp(-rest[:, None] / LENGTHS), 0.0)
    length = PER_STREAK * jnp.minimum(streaks.length.astype(jnp.float32), LONGEST)
    streak = jnp.where(jnp.arange(arms) == streaks.arm, length, 0.0)
    shared = jnp.broadcast_to(history.units, (arms, history.units.size))
    return jnp.concatenate([shared, rested, streak[:, None], jnp.ones((arms, 1))], axis=1)


def add_reward(history: History, reward: Array, mean: Array, variance: Array) -> History:
    """`reward` as it was learned, and what is known of all rewards."""
    apart = (reward - mean) / jnp.sqrt(variance)
    return history._replace(reward=jnp.clip(apart, -LOUDEST, LOUDEST))
