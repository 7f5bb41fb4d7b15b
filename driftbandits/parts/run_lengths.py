"""An effect of how often an arm has just been pulled in a row, shared by the arms.

For every run length a spike and a slab: there is an effect on the reward, about the mean of what
was seen above the prediction, or there is none. Only evidence makes one likely: Student's density
of each error with the effect, over that without. Where one run length has an effect, the next one
is likely to have it too, and about the same.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.parts.experts import log_student

EXACT = 24  # run lengths below have a bucket of their own
BUCKETS = 40
RATIO = 4 / 3  # of the longer ones, from bucket to bucket
LASTS = 0.5  # chance that an effect at one run length goes on at the next
WEAKEST, STRONGEST = -1.5, 35.0  # evidence is held between, so that an effect may come and go


def edges() -> np.ndarray:
    """The shortest run length of every bucket."""
    shortest, longer = list(range(EXACT)), EXACT
    while len(shortest) < BUCKETS:
        shortest.append(longer)
        longer = int(longer * RATIO)
    return np.array(shortest, np.int32)


EDGES = edges()


class Runs(NamedTuple):
    evidence: Array  # (BUCKETS,) float32, log odds gained by an effect at that run length
    rewards: Array  # (BUCKETS,) float32, rewards of pulls at that run length
    total: Array  # (BUCKETS,) float32, what they were above the prediction
    last: Array  # () int32, the arm pulled last; -1 before the first pull
    length: Array  # () int32, how often in a row


class Effect(NamedTuple):
    """Of pulling the last arm once more."""

    bucket: Array  # () int32
    chance: Array  # () float32, that there is one
    size: Array  # () float32, if there is


def no_runs() -> Runs:
    zeros = jnp.zeros(BUCKETS)
    return Runs(zeros, zeros, zeros, jnp.int32(-1), jnp.int32(0))


def effect_now(runs: Runs, rare: float) -> Effect:
    """Of the run length at hand; `rare` is the chance of one that nothing speaks for."""
    bucket = jnp.sum(runs.length >= jnp.asarray(EDGES)) - 1
    before = chance_of(at(runs.evidence, bucket - 1), rare)
    known = at(runs.total, bucket - 1) / (at(runs.rewards, bucket - 1) + 1)
    chance = chance_of(at(runs.evidence, bucket), rare + (LASTS - rare) * before)
    size = (at(runs.total, bucket) + before * known) / (at(runs.rewards, bucket) + 1)
    return Effect(bucket, jnp.where(runs.length > 0, chance, 0.0), size)


def push(runs: Runs, effect: Effect, num_arms: int) -> Array:
    """What the effect, if there is one, adds to every arm."""
    return jnp.where(jnp.arange(num_arms) == runs.last, effect.size, 0.0)


def chance_of(evidence: Array, prior: Array | float) -> Array:
    return jax.nn.sigmoid(evidence + jnp.log(prior) - jnp.log1p(-jnp.asarray(prior)))


def at(values: Array, bucket: Array) -> Array:
    """By a mask, which vectorises over runs where an index does not; 0 before the first bucket."""
    return jnp.sum(values, where=jnp.arange(BUCKETS) == bucket)


def pull(runs: Runs, arm: Array) -> Runs:
    length = jnp.where(arm == runs.last, runs.length + 1, 1)
    return runs._replace(last=arm, length=length)


def weigh(
    runs: Runs, effect: Effect, error: Array, variance: Array, noise: Array, freedom: Array
) -> Runs:
    """After the reward of a pull in a row.

    Args:
        effect: as it was at the decision.
        error: of the prediction without an effect.
        variance: of that prediction.
        noise: of a reward.
        freedom: degrees of freedom of both variances.
    """
    here = jnp.arange(BUCKETS) == effect.bucket
    wider = variance + noise / (at(runs.rewards, effect.bucket) + 1)
    gained = log_student(error - effect.size, wider, freedom) - log_student(
        error, variance, freedom
    )
    evidence = jnp.clip(runs.evidence + gained, WEAKEST, STRONGEST)
    return runs._replace(
        evidence=jnp.where(here, evidence, runs.evidence),
        rewards=runs.rewards + here,
        total=runs.total + jnp.where(here, error, 0.0),
    )
