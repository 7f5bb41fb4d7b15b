"""The filters of kalman.py with variances only, as if the coefficients were independent.

Time and memory grow with the number of features instead of its square. The correlations between the
estimates are lost: a reward that determines a sum of coefficients counts as a little information
about each of them.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.policies.tracker.kalman import LEAST, Bank, World


def start(world: World, num_arms: int) -> Bank:
    shape = world.drifts.size, num_arms, world.prior.size
    return Bank(jnp.zeros(shape), jnp.broadcast_to(world.prior, shape))


def predict(bank: Bank, features: Array) -> tuple[Array, Array]:
    """Mean and variance of every arm's coefficients along the features: (experts, num_arms)."""
    mean = jnp.sum(bank.mean * features, axis=-1)
    return mean, jnp.maximum(jnp.sum(bank.covariance * features**2, axis=-1), LEAST)


def pass_time(bank: Bank, world: World, steps: Array) -> Bank:
    """The variance of every coefficient grows with every step, up to its prior."""
    room = jnp.maximum(0.0, 1 - bank.covariance / world.prior)
    step = jnp.minimum(steps * world.drifts[:, None] * world.speeds, world.prior)
    return bank._replace(covariance=bank.covariance + step[:, None] * room)


def predict_arm(bank: Bank, arm: Array, features: Array) -> tuple[Array, Array, Array]:
    """Of one arm, per expert: mean, variance, and the covariance of its coefficients with them."""
    mean = jnp.sum(bank.mean[:, arm] * features, axis=-1)
    along = bank.covariance[:, arm] * features
    return mean, jnp.maximum(jnp.sum(along * features, axis=-1), LEAST), along


def correct(bank: Bank, arm: Array, error: Array, gain: Array, total: Array) -> Bank:
    """Every expert learns from its error in predicting the arm's reward."""
    pulled = (jnp.arange(bank.mean.shape[1]) == arm)[:, None]
    step = gain * (error / total)[:, None]
    drop = gain**2 / total[:, None]
    return Bank(
        bank.mean + jnp.where(pulled, step[:, None], 0.0),
        bank.covariance - jnp.where(pulled, drop[:, None], 0.0),
    )


def mix(bank: Bank, weights: Array, noise: Array, restart: Array) -> Bank:
    """Each expert takes the share `restart` of its state from the whole bank's."""
    usual = jnp.sum(weights * noise)
    apart = bank.mean - jnp.einsum("j,jkd->kd", weights, bank.mean)
    within = jnp.einsum("j,jkd->kd", weights * noise / usual, bank.covariance)
    between = jnp.einsum("j,jkd->kd", weights / usual, apart**2)
    share = restart[:, None, None]
    return Bank(
        bank.mean - share * apart,
        (1 - share) * bank.covariance
        + share * (within + between)
        + share * (1 - share) / usual * apart**2,
    )
