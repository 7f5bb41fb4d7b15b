"""A bank of Kalman filters for every arm, from a static one to a fast one.

    expert j assumes:   reward = z'm_k + noise,   m_k(t+1) = m_k(t) + N(0, drift_j * S)

Covariances are in units of the expert's noise variance. The experts mix their states as in the
interacting-multiple-models filter of Blom & Bar-Shalom (1988): each takes a small share of its
state from the whole bank, equal to the probability that it has just become the right one.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

LEAST = 1e-12  # of a predicted variance


class Bank(NamedTuple):
    mean: Array  # (experts, num_arms, dim) float32
    covariance: Array  # (experts, num_arms, dim, dim) float32, or (..., dim), only the variances


class World(NamedTuple):
    """What the experts of a bank assume."""

    drifts: Array  # (experts,) variance that a coefficient gains per step, before `speeds`
    speeds: Array  # (experts, dim) how fast each coefficient may drift, relative to the others
    prior: Array  # (dim,) variance of each coefficient before any reward


def start(world: World, num_arms: int) -> Bank:
    experts, dim = world.drifts.size, world.prior.size
    covariance = jnp.broadcast_to(jnp.diag(world.prior), (experts, num_arms, dim, dim))
    return Bank(jnp.zeros((experts, num_arms, dim)), covariance)


def predict(bank: Bank, features: Array) -> tuple[Array, Array]:
    """Mean and variance of every arm's coefficients along the features: (experts, num_arms).

    Features are those of all arms, (dim,), or each arm has its own, (num_arms, dim).
    """
    if features.ndim == 2 and bank.mean.shape[1] == 1:
        return predict_shared(bank, features)
    mean = jnp.sum(bank.mean * features, axis=-1)
    squares = features[..., :, None] * features[..., None, :]
    variance = jnp.sum(bank.covariance * squares, axis=(-2, -1))
    return mean, jnp.maximum(variance, LEAST)


def pass_time(bank: Bank, world: World, steps: Array) -> Bank:
    """The variance of every coefficient grows with every step, up to its prior."""
    room = jnp.maximum(0.0, 1 - bank.covariance / world.prior)
    step = jnp.minimum(steps * world.drifts[:, None] * world.speeds, world.prior)
    gained = (step[:, :, None] * jnp.eye(len(world.prior)))[:, None] * room
    return bank._replace(covariance=bank.covariance + gained)


def predict_shared(bank: Bank, features: Array) -> tuple[Array, Array]:
    """The same where all arms have the same coefficients: a product of matrices is quicker."""
    along = jnp.einsum("jil,kl->jik", bank.covariance[:, 0], features)
    variance = jnp.sum(along * features.T, axis=1)
    return bank.mean[:, 0] @ features.T, jnp.maximum(variance, LEAST)


def predict_arm(bank: Bank, arm: Array, features: Array) -> tuple[Array, Array, Array]:
    """Of one arm, per expert: mean, variance, and the covariance of its coefficients with them."""
    mean = jnp.sum(bank.mean[:, arm] * features, axis=-1)
    along = jnp.sum(bank.covariance[:, arm] * features, axis=-1)
    return mean, jnp.maximum(jnp.sum(along * features, axis=-1), LEAST), along


def correct(bank: Bank, arm: Array, error: Array, gain: Array, total: Array) -> Bank:
    """Every expert learns from its error in predicting the arm's reward.

    Args:
        error: (experts,) Reward minus prediction.
        gain: (experts, dim) Covariance of the coefficients with the reward.
        total: (experts,) Variance of the reward.
    """
    pulled = jnp.arange(bank.mean.shape[1]) == arm
    step = gain * (error / total)[:, None]
    drop = gain[:, :, None] * gain[:, None, :] / total[:, None, None]
    return Bank(
        bank.mean + jnp.where(pulled[:, None], step[:, None], 0.0),
        bank.covariance - jnp.where(pulled[:, None, None], drop[:, None], 0.0),
    )


def mix(bank: Bank, weights: Array, noise: Array, restart: Array) -> Bank:
    """Each expert takes the share `restart` of its state from the whole bank's.

    Args:
        weights: (experts,) Weights of the experts, with sum 1.
        noise: (experts,) Their noise variances.
        restart: (experts,) The probability that an expert has just become the right one.
    """
    usual = jnp.sum(weights * noise)
    apart = bank.mean - jnp.einsum("j,jkd->kd", weights, bank.mean)
    within = jnp.einsum("j,jkab->kab", weights * noise / usual, bank.covariance)
    between = jnp.einsum("j,jka,jkb->kab", weights / usual, apart, apart)
    share = restart[:, None, None]
    own = jnp.sqrt(share * (1 - share) / usual) * apart
    return Bank(
        bank.mean - share * apart,
        (1 - share[..., None]) * bank.covariance
        + share[..., None] * (within + between)
        + own[..., :, None] * own[..., None, :],
    )
