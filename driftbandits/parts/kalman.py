"""A bank of Kalman filters for every arm, from one that stands still to one that follows quickly.

    reward = z'm_k + noise,   m_k(t+1) = m_k(t) + N(0, drift_j * S)   in the eyes of expert j

Covariances are in units of the expert's noise variance. The experts mix their states as in the
interacting-multiple-models filter of Blom & Bar-Shalom (1988): each restarts, with the small chance
that it has just become the right one, from the state of the whole bank.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

LEAST = 1e-12  # of a predicted variance


class Bank(NamedTuple):
    mean: Array  # (experts, num_arms, dim) float32
    covariance: Array  # (experts, num_arms, dim, dim) float32


class World(NamedTuple):
    """What the experts of a bank take the world to be."""

    drifts: Array  # (experts,) variance that a coefficient gains per step, before `speeds`
    speeds: Array  # (dim,) how fast each coefficient may drift beside the others
    prior: Array  # (dim,) variance of each coefficient before any reward


def start(world: World, num_arms: int) -> Bank:
    experts, dim = world.drifts.size, world.prior.size
    covariance = jnp.broadcast_to(jnp.diag(world.prior), (experts, num_arms, dim, dim))
    return Bank(jnp.zeros((experts, num_arms, dim)), covariance)


def predict(bank: Bank, features: Array) -> tuple[Array, Array]:
    """Mean and variance of every arm's coefficients along the features: (experts, num_arms)."""
    mean = jnp.sum(bank.mean * features, axis=-1)
    variance = jnp.sum(bank.covariance * jnp.outer(features, features), axis=(-2, -1))
    return mean, jnp.maximum(variance, LEAST)


def pass_time(bank: Bank, world: World) -> Bank:
    """Every coefficient grows doubtful, up to its prior."""
    variance = jnp.diagonal(bank.covariance, axis1=-2, axis2=-1)
    room = jnp.maximum(0.0, 1 - variance / world.prior)
    gained = world.drifts[:, None, None] * world.speeds * room
    return bank._replace(covariance=bank.covariance + gained[..., None] * jnp.eye(len(world.prior)))


def correct(bank: Bank, arm: Array, features: Array, error: Array, known: Array) -> Bank:
    """Every expert learns from its error in predicting the arm's reward.

    `known` is the share of the variance along the features that was there when the arm was pulled:
    what drifted in since then says nothing about a late reward.
    """
    pulled = jnp.arange(bank.mean.shape[1]) == arm
    own = jnp.sum(bank.covariance, axis=1, where=pulled[:, None, None])
    seen = jnp.sum(own * features, axis=-1)
    variance = jnp.maximum(jnp.sum(seen * features, axis=-1), LEAST)
    gain = known[:, None] * seen
    total = 1 + known * variance
    step = gain * (error / total)[:, None]
    drop = gain[:, :, None] * gain[:, None, :] / total[:, None, None]
    return Bank(
        bank.mean + jnp.where(pulled[:, None], step[:, None], 0.0),
        bank.covariance - jnp.where(pulled[:, None, None], drop[:, None], 0.0),
    )


def mix(bank: Bank, weights: Array, noise: Array, fresh: Array) -> Bank:
    """Each expert takes the share `fresh` of its state from the bank's.

    Args:
        weights: (experts,) of the experts, with the sum 1.
        noise: (experts,) their noise variances.
        fresh: (experts,) the chance that an expert has just become the right one.
    """
    usual = jnp.sum(weights * noise)
    common = jnp.einsum("j,jkd->kd", weights, bank.mean)
    apart = bank.mean - common
    spread = apart[..., :, None] * apart[..., None, :] / usual
    own = (noise / usual)[:, None, None, None] * bank.covariance
    whole = jnp.sum(weights[:, None, None, None] * (own + spread), axis=0)
    share = fresh[:, None, None, None]
    return Bank(
        bank.mean - fresh[:, None, None] * apart,
        (1 - share) * bank.covariance + share * whole + share * (1 - share) * spread,
    )
