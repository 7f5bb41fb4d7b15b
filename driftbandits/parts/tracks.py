"""What rewards depend on, followed by a bank of experts: levels, slopes, and how fast they drift.

One track is one set of features: its bank of filters, and how much each expert is trusted.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.parts import experts, kalman
from driftbandits.parts.experts import Experts
from driftbandits.parts.kalman import Bank, World


class Track(NamedTuple):
    bank: Bank
    experts: Experts


class Constants(NamedTuple):
    """What a track takes the world to be, and how it learns and hopes."""

    world: World
    belief: Array  # (experts,) weights before any reward
    share: float  # of the weights that goes back to it at every reward
    memory: float  # of the noise
    doubt: float  # how many rewards the spread of all rewards counts for in the noise
    width: float
    growth: float


class Forecast(NamedTuple):
    """Of one arm's reward, by every expert."""

    mean: Array  # (experts,)
    variance: Array  # (experts,) in units of its noise
    gain: Array  # (experts, dim) covariance of the coefficients with the reward


def constants(
    drifts: tuple[float, ...], speeds: list[float], prior: list[float], *rest: float
) -> Constants:
    halves = 2.0 ** -np.arange(len(drifts))
    with jax.ensure_compile_time_eval():  # a policy that is built while tracing outlives the trace
        belief = jnp.asarray(halves / halves.sum(), jnp.float32)
        world = World(*(jnp.asarray(x, jnp.float32) for x in (drifts, speeds, prior)))
    return Constants(world, belief, *rest)


def start(about: Constants, num_arms: int) -> Track:
    return Track(kalman.start(about.world, num_arms), experts.start(about.belief))


def index(track: Track, about: Constants, features: Array) -> tuple[Array, Array]:
    """Of every arm the mean and the width of the optimism: the index is their sum.

    known_k is how many rewards of the arm, with these features, would leave as much doubt; the
    width grows with the logarithm of its share, which stays bounded where experts forget.
    """
    judged = track.experts
    means, variances = kalman.predict(track.bank, features)
    mean = judged.weights @ means
    variance = judged.weights @ (judged.noise[:, None] * variances + (means - mean) ** 2)
    known = jnp.sum(judged.weights * judged.noise) / variance
    ratio = jnp.log(jnp.maximum(1.0, jnp.sum(known) / known))
    return mean, jnp.sqrt(variance * (about.width + about.growth * ratio))


def forecast(track: Track, about: Constants, features: Array, arm: Array, since: Array) -> Forecast:
    """Of the reward of a pull after which time has passed for `since` steps.

    What has drifted in since says nothing about it: of the variance only the rest counts.
    """
    mean, variance, along = kalman.predict_arm(track.bank, arm, features)
    drifted = since * about.world.drifts * jnp.sum(about.world.speeds * features**2)
    known = jnp.clip(1 - drifted / variance, 0.0, 1.0)
    return Forecast(mean, known * variance, known[:, None] * along)


def learn(
    track: Track,
    about: Constants,
    arm: Array,
    made: Forecast,
    reward: Array,
    spread: Array,
    judges: Array,
    steps: Array,
) -> Track:
    """After one reward, `steps` after the one before.

    It may not judge the experts; then their states do not mix either.
    """
    judged, errors = track.experts, reward - made.mean
    weights = experts.weigh(judged, errors, made.variance, about.doubt, about.share, about.belief)
    weights = jnp.where(judges, weights, judged.weights)
    judged = experts.hear(judged, errors, made.variance, about.doubt, about.memory, spread)
    judged = judged._replace(weights=weights)
    fresh = jnp.where(judges, jnp.minimum(about.share * about.belief / weights, 1.0), 0.0)
    bank = kalman.correct(track.bank, arm, errors, made.gain, 1 + made.variance)
    bank = kalman.mix(bank, weights, judged.noise, fresh)
    return Track(kalman.pass_time(bank, about.world, steps), judged)


def set_level(track: Track, arms: Array, level: Array) -> Track:
    """The level (the last coefficient) of these arms, in the eyes of all experts."""
    levels = jnp.where(arms, level, track.bank.mean[:, :, -1])
    return track._replace(bank=track.bank._replace(mean=track.bank.mean.at[:, :, -1].set(levels)))
