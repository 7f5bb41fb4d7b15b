"""The effect of how often an arm has just been pulled in a row, shared by the arms.

A row of pulls of the same arm is a streak. For every length of a streak there is a spike and a
slab: either the length has an effect on the reward, about the mean of what was seen above the
prediction, or it has none. Only evidence makes an effect likely: Student's density of each error
with the effect, over that without. If one length has an effect, the next is likely to have about
the same.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.policies.tracker.experts import log_student

EXACT = 24  # shorter streaks have a bucket for each length
BUCKETS = 40
RATIO = 4 / 3  # of the longer ones, from bucket to bucket
LASTS = 0.5  # probability that an effect at one length continues at the next
WEAKEST, STRONGEST = -1.5, 35.0  # limits of the evidence, so that an effect may come and go


def edges() -> np.ndarray:
    """The shortest length of every bucket."""
    shortest, longer = list(range(EXACT)), EXACT
    while len(shortest) < BUCKETS:
        shortest.append(longer)
        longer = int(longer * RATIO)
    return np.array(shortest, np.int32)


EDGES = edges()


class Streaks(NamedTuple):
    """What is known about every length, and the current streak."""

    evidence: Array  # (BUCKETS,) float32, log odds gained by an effect at that length
    counts: Array  # (BUCKETS,) float32, rewards of pulls at that length
    excess: Array  # (BUCKETS,) float32, the sum of what they were above the prediction
    arm: Array  # () int32, the arm pulled last; -1 before the first pull
    length: Array  # () int32, how often in a row


class Effect(NamedTuple):
    """The effect of pulling the last arm once more."""

    bucket: Array  # () int32
    chance: Array  # () float32, that there is one
    size: Array  # () float32, if there is


def no_streaks() -> Streaks:
    zeros = jnp.zeros(BUCKETS)
    return Streaks(
        evidence=zeros, counts=zeros, excess=zeros, arm=jnp.int32(-1), length=jnp.int32(0)
    )


def current_effect(streaks: Streaks, prior: float) -> Effect:
    """The effect at the current length; `prior` is its probability without evidence."""
    bucket = jnp.sum(streaks.length >= jnp.asarray(EDGES)) - 1
    chance_before = chance_of(at(streaks.evidence, bucket - 1), prior)
    size_before = at(streaks.excess, bucket - 1) / (at(streaks.counts, bucket - 1) + 1)
    chance = chance_of(at(streaks.evidence, bucket), prior + (LASTS - prior) * chance_before)
    total = at(streaks.excess, bucket) + chance_before * size_before
    size = total / (at(streaks.counts, bucket) + 1)
    return Effect(bucket, jnp.where(streaks.length > 0, chance, 0.0), size)


def effect_by_arm(streaks: Streaks, effect: Effect, num_arms: int) -> Array:
    """What the effect, if there is one, adds to every arm."""
    return jnp.where(jnp.arange(num_arms) == streaks.arm, effect.size, 0.0)


def chance_of(evidence: Array, prior: Array | float) -> Array:
    return jax.nn.sigmoid(evidence + jnp.log(prior) - jnp.log1p(-jnp.asarray(prior)))


def at(values: Array, bucket: Array) -> Array:
    """One value, picked by a mask, which vectorises over runs; 0 before the first bucket."""
    return jnp.sum(values, where=jnp.arange(BUCKETS) == bucket)


def add_pull(streaks: Streaks, arm: Array) -> Streaks:
    length = jnp.where(arm == streaks.arm, streaks.length + 1, 1)
    return streaks._replace(arm=arm, length=length)


def without_streak(streaks: Streaks, is_new: Array) -> Streaks:
    """The streak ends where a new arm takes the place of the one pulled last."""
    ends = (streaks.arm >= 0) & is_new[streaks.arm]
    return streaks._replace(
        arm=jnp.where(ends, -1, streaks.arm), length=jnp.where(ends, 0, streaks.length)
    )


def add_evidence(
    streaks: Streaks,
    effect: Effect,
    *,
    error: Array,
    variance: Array,
    noise: Array,
    freedom: Array,
) -> Streaks:
    """Learns from the reward of a repeated pull.

    Args:
        streaks: State before the reward.
        effect: The effect at the time of the decision.
        error: Error of the prediction without an effect.
        variance: Variance of that prediction.
        noise: Noise variance of a reward.
        freedom: Degrees of freedom of both variances.
    """
    here = jnp.arange(BUCKETS) == effect.bucket
    wider = variance + noise / (at(streaks.counts, effect.bucket) + 1)
    with_effect = log_student(error - effect.size, wider, freedom)
    gained = with_effect - log_student(error, variance, freedom)
    evidence = jnp.clip(streaks.evidence + gained, WEAKEST, STRONGEST)
    return streaks._replace(
        evidence=jnp.where(here, evidence, streaks.evidence),
        counts=streaks.counts + here,
        excess=streaks.excess + jnp.where(here, error, 0.0),
    )
