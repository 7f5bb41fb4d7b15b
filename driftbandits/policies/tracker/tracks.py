"""A track: what rewards depend on, followed by experts. Levels, slopes, and how fast they drift.

A track has one set of features: its bank of filters, and the weight of each expert.
"""

from types import ModuleType
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.policies.tracker import diagonal, experts, kalman
from driftbandits.policies.tracker.experts import Experts
from driftbandits.policies.tracker.kalman import Bank, World


class Track(NamedTuple):
    bank: Bank
    experts: Experts


class Learning(NamedTuple):
    """How a track learns, and how optimistic it is: settings of the policy."""

    share: float  # of the experts' weights that returns to the belief at every reward
    memory: float  # of the noise estimate
    doubt: float  # how many rewards the variance of all rewards counts for in the noise
    width: float  # squared, of the optimism, in standard deviations
    growth: float  # of the squared width


class Constants(NamedTuple):
    """What a track assumes about the world, and how it learns."""

    world: World
    belief: Array  # (experts,) weights before any reward
    learning: Learning
    diagonal: bool  # whether the filters store variances without covariances

    @property
    def filters(self) -> ModuleType:
        return diagonal if self.diagonal else kalman


class Changed(NamedTuple):
    """Arms that may have changed while nobody was looking."""

    chance: Array  # (num_arms,) that it has
    pulled: Array  # (num_arms,) bool, whether anything is known of it


class Forecast(NamedTuple):
    """The forecast of one arm's reward by every expert."""

    mean: Array  # (experts,)
    variance: Array  # (experts,) in units of its noise
    gain: Array  # (experts, dim) covariance of the coefficients with the reward


def constants(
    drifts: tuple[float, ...],
    *,
    speeds: list[float],
    prior: list[float],
    learning: Learning,
    steady: tuple[float, ...] = (),
    diagonal: bool = False,
) -> Constants:
    """The constants of experts with these drifts; `speeds` and `prior` are per feature.

    `steady` are the drifts of further experts, all of whose coefficients drift at speed 1. The
    belief in the first of them is that in the second of the others.
    """
    halves = 2.0 ** -np.append(np.arange(len(drifts)), 1 + np.arange(len(steady)))
    # NumPy: a policy that is built while tracing outlives the trace, and nothing is compiled.
    belief = (halves / halves.sum()).astype(np.float32)
    speeds_by_expert = [speeds] * len(drifts) + [[1.0] * len(speeds)] * len(steady)
    numbers = [*drifts, *steady], speeds_by_expert, prior
    world = World(*(np.float32(x) for x in numbers))  # type: ignore[arg-type]
    return Constants(world, belief, learning, diagonal)


def start(constants: Constants, num_arms: int) -> Track:
    return Track(
        constants.filters.start(constants.world, num_arms), experts.start(constants.belief)
    )


def mean_and_width(
    track: Track, constants: Constants, features: Array, changed: Changed | None = None
) -> tuple[Array, Array]:
    """The mean of every arm and the width of the optimism: the index is their sum.

    known_k is the number of rewards of the arm, with these features, that would leave as much
    uncertainty. The width grows with the logarithm of its share, which stays bounded if experts
    forget.
    """
    weights, noise, settings = track.experts.weights, track.experts.noise, constants.learning
    means, variances = constants.filters.predict(track.bank, features)
    mean = weights @ means
    variance = weights @ (noise[:, None] * variances + (means - mean) ** 2)
    if changed is not None:
        mean, variance = with_changes(mean, variance, changed)
    known = jnp.sum(weights * noise) / variance
    ratio = jnp.log(jnp.maximum(1.0, jnp.sum(known) / known))
    return mean, jnp.sqrt(variance * (settings.width + settings.growth * ratio))


def with_changes(mean: Array, variance: Array, changed: Changed) -> tuple[Array, Array]:
    """Means and variances of arms that may have changed unseen, to an arm like the others."""
    chance, pulled = changed
    count = jnp.maximum(jnp.sum(pulled), 1)
    centre = jnp.sum(mean, where=pulled) / count
    apart = mean - centre
    spread = jnp.sum(apart**2, where=pulled) / count
    within = (1 - chance) * variance + chance * spread
    return mean - chance * apart, within + chance * (1 - chance) * apart**2


def forecast_reward(
    track: Track, constants: Constants, features: Array, arm: Array, drift_steps: Array
) -> Forecast:
    """The forecast of the reward of a pull that was `drift_steps` steps ago.

    The reward says nothing about the drift since then, so that part of the variance does not count.
    """
    mean, variance, along = constants.filters.predict_arm(track.bank, arm, features)
    drifts, speeds, _ = constants.world
    drifted = drift_steps * drifts * jnp.sum(speeds * features**2, axis=-1)
    known = jnp.clip(1 - drifted / variance, 0.0, 1.0)
    return Forecast(mean, known * variance, known[:, None] * along)


def learn(
    track: Track,
    constants: Constants,
    forecast: Forecast,
    *,
    arm: Array,
    reward: Array,
    reward_variance: Array,
    judges: Array,
    steps: Array,
) -> Track:
    """Learns one reward.

    Args:
        track: The track before the reward.
        constants: Its constants.
        forecast: The forecast of this reward.
        arm: The arm that was pulled.
        reward: The reward, relative to the first of all rewards.
        reward_variance: Variance of all rewards so far.
        judges: Whether it changes the experts' weights; if not, their states do not mix either.
        steps: Decisions since the last reward was learned.
    """
    belief, settings = constants.belief, constants.learning
    before, errors, variance = track.experts, reward - forecast.mean, forecast.variance
    doubt, share, memory = settings.doubt, settings.share, settings.memory
    weights = experts.update_weights(
        before, errors, variance, doubt=doubt, share=share, belief=belief
    )
    weights = jnp.where(judges, weights, before.weights)
    after = experts.update_noise(
        before, errors, variance, doubt=doubt, memory=memory, reward_variance=reward_variance
    )
    restart = jnp.where(judges, jnp.minimum(share * belief / weights, 1.0), 0.0)
    filters = constants.filters
    bank = filters.correct(track.bank, arm, errors, forecast.gain, 1 + variance)
    bank = filters.mix(bank, weights, after.noise, restart)
    return Track(filters.pass_time(bank, constants.world, steps), after._replace(weights=weights))


def set_level(track: Track, arms: Array, level: Array) -> Track:
    """Sets the level (the last coefficient) of these arms for all experts."""
    levels = jnp.where(arms, level, track.bank.mean[:, :, -1])
    return track._replace(bank=track.bank._replace(mean=track.bank.mean.at[:, :, -1].set(levels)))
