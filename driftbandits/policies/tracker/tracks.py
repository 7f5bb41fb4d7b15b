"""A track: what rewards depend on, followed by experts. Levels, slopes, and how fast they drift.

A track has one set of features: its bank of filters, and the weight of each expert.
"""

from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.policies.tracker import diagonal, experts, kalman
from driftbandits.policies.tracker.experts import Experts
from driftbandits.policies.tracker.kalman import Bank, World


class Track(NamedTuple):
    bank: Bank | None  # of each arm's own coefficients
    experts: Experts
    shared: Bank | None = None  # of coefficients that all arms share: a bank of one arm


class Features(NamedTuple):
    """What the rewards of one track depend on."""

    own: Array | None  # (dim,) for all arms, or (num_arms, dim)
    shared: Array | None = None  # (num_arms, dim)

    def of_arm(self, arm: Array) -> "Features":
        return Features(*(row_of(part, arm) for part in self))


def row_of(part: Array | None, arm: Array) -> Array | None:
    """Picked by a mask, which vectorises over runs."""
    if part is None or part.ndim == 1:
        return part
    return jnp.sum(part, axis=0, where=(jnp.arange(len(part)) == arm)[:, None])


class Learning(NamedTuple):
    """How a track learns, and how optimistic it is: settings of the policy."""

    share: float  # of the experts' weights that returns to the belief at every reward
    memory: float  # of the noise estimate
    doubt: float  # how many rewards the variance of all rewards counts for in the noise
    width: float  # squared, of the optimism, in standard deviations
    growth: float  # of the squared width
    streak_doubt: float = 2.0  # as `doubt`, where an effect of a streak is weighed


class Constants(NamedTuple):
    """What a track assumes about the world, and how it learns."""

    world: World | None  # of the arms' own coefficients
    belief: Array  # (experts,) weights before any reward
    learning: Learning
    diagonal: bool  # whether the filters store variances without covariances
    shared: World | None = None  # of the shared coefficients
    is_still: bool = False  # a single static expert: no time passes, and nothing is mixed

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
    gains: list[Array]  # of each bank, (experts, dim): covariance of its coefficients with it


def constants(
    drifts: tuple[float, ...],
    *,
    speeds: list[float],
    prior: list[float],
    learning: Learning,
    steady: tuple[float, ...] = (),
    diagonal: bool = False,
    shared: bool = False,
) -> Constants:
    """The constants of experts with these drifts; `speeds` and `prior` are per feature.

    `steady` are the drifts of further experts, all of whose coefficients drift at speed 1. The
    belief in the first of them is that in the second of the others. With `shared`, the arms share
    all coefficients.
    """
    halves = 2.0 ** -np.append(np.arange(len(drifts)), 1 + np.arange(len(steady)))
    # NumPy: a policy that is built while tracing outlives the trace, and nothing is compiled.
    belief = (halves / halves.sum()).astype(np.float32)
    speeds_by_expert = [speeds] * len(drifts) + [[1.0] * len(speeds)] * len(steady)
    numbers = [*drifts, *steady], speeds_by_expert, prior
    world = World(*(np.float32(x) for x in numbers))  # type: ignore[arg-type]
    own = None if shared else world
    is_still = len(belief) == 1 and not any(drifts)
    return Constants(own, belief, learning, diagonal, world if shared else None, is_still)


def start(constants: Constants, num_arms: int) -> Track:
    begin, (own, shared) = constants.filters.start, (constants.world, constants.shared)
    return Track(
        None if own is None else begin(own, num_arms),
        experts.start(constants.belief),
        None if shared is None else begin(shared, 1),
    )


def those(*parts: Any) -> list[Any]:
    """Of the own and the shared coefficients, those that a track has."""
    return [part for part in parts if part is not None]


def predict(track: Track, constants: Constants, features: Features) -> tuple[Array, Array]:
    """Mean and variance of every arm's reward by every expert: (experts, num_arms)."""
    pairs = zip(those(track.bank, track.shared), those(*features), strict=True)
    found = [constants.filters.predict(bank, z) for bank, z in pairs]
    means, variances = zip(*found, strict=True)
    return sum(means[1:], means[0]), sum(variances[1:], variances[0])


def mean_and_width(
    track: Track, constants: Constants, features: Features, changed: Changed | None = None
) -> tuple[Array, Array]:
    """The mean of every arm and the width of the optimism: the index is their sum.

    known_k is the number of rewards of the arm, with these features, that would leave as much
    uncertainty. The width grows with the logarithm of its share, which stays bounded if experts
    forget.
    """
    weights, noise, settings = track.experts.weights, track.experts.noise, constants.learning
    means, variances = predict(track, constants, features)
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
    track: Track, constants: Constants, features: Features, arm: Array, drift_steps: Array
) -> Forecast:
    """The forecast of the reward of a pull that was `drift_steps` steps ago.

    The reward says nothing about the drift since then, so that part of the variance does not count.

    Args:
        track: The track.
        constants: Its constants.
        features: The features of that arm at that pull.
        arm: The arm.
        drift_steps: For how long it may have drifted since.
    """
    found, drifted = [], []
    for bank, world, z in zip(
        those(track.bank, track.shared),
        those(constants.world, constants.shared),
        those(*features),
        strict=True,
    ):
        found.append(constants.filters.predict_arm(bank, place(bank, arm), z))
        drifted.append(drift_steps * world.drifts * jnp.sum(world.speeds * z**2, axis=-1))
    means, variances, along = zip(*found, strict=True)
    mean, variance = sum(means[1:], means[0]), sum(variances[1:], variances[0])
    known = jnp.clip(1 - sum(drifted[1:], drifted[0]) / variance, 0.0, 1.0)
    return Forecast(mean, known * variance, [known[:, None] * each for each in along])


def place(bank: Bank, arm: Array) -> Array:
    """Where a bank has the coefficients of an arm."""
    return arm if bank.mean.shape[1] > 1 else jnp.zeros_like(arm)


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
    filters, gains = constants.filters, iter(forecast.gains)

    def learned(bank: Bank | None, world: World | None) -> Bank | None:
        if bank is None:
            return None
        bank = filters.correct(bank, place(bank, arm), errors, next(gains), 1 + variance)
        if constants.is_still:
            return bank
        bank = filters.mix(bank, weights, after.noise, restart)
        return filters.pass_time(bank, world, steps)

    own = learned(track.bank, constants.world)
    shared = learned(track.shared, constants.shared)
    return Track(own, after._replace(weights=weights), shared)


def set_level(track: Track, arms: Array, level: Array) -> Track:
    """Sets the level (the last coefficient) of these arms for all experts, if it is their own."""
    if track.bank is None or track.shared is not None:
        return track
    levels = jnp.where(arms, level, track.bank.mean[:, :, -1])
    return track._replace(bank=track.bank._replace(mean=track.bank.mean.at[:, :, -1].set(levels)))
