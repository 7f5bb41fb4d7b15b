"""Bayesian linear regression of the reward, one model per arm.

    precision P_k = lambda I + sum z z';   mean mu_k = P_k^-1 sum r z

stored as mean and covariance, updated by each residual. That loses no digits if rewards are large
compared to their noise, as sums of squares would in float32.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.numerics.arms import set_arm

LEAST_SPREAD = 1e-12


class LinearPosterior(NamedTuple):
    mean: Array  # (num_arms, dim) float32
    covariance: Array  # (num_arms, dim, dim) float32, inverse of the precision


def prior(num_arms: int, dim: int, precision: float) -> LinearPosterior:
    covariance = jnp.broadcast_to(jnp.eye(dim) / precision, (num_arms, dim, dim))
    return LinearPosterior(jnp.zeros((num_arms, dim)), covariance)


def predict(posterior: LinearPosterior, z: Array) -> tuple[Array, Array]:
    """Mean and spread z' P^-1 z of every arm's score, each (num_arms,).

    The spread stays above zero, so that sampling breaks the tie where all features are zero.
    """
    spread = posterior.covariance @ z @ z
    return posterior.mean @ z, jnp.maximum(spread, LEAST_SPREAD)


def update(
    posterior: LinearPosterior, arm: Array, z: Array, reward: Array
) -> tuple[LinearPosterior, Array]:
    """The posterior after one reward, and how much it adds to the weighted squares of residuals."""
    covariance = posterior.covariance[arm]
    gain = covariance @ z
    width = 1 + z @ gain
    residual = reward - posterior.mean[arm] @ z
    mean = posterior.mean[arm] + gain * residual / width
    shrunk = covariance - jnp.outer(gain, gain) / width
    posterior = LinearPosterior(
        set_arm(posterior.mean, arm, mean), set_arm(posterior.covariance, arm, shrunk)
    )
    return posterior, residual**2 / width


def fit_arm(
    rows: Callable[[Array], tuple[Array, Array]], blocks: Array, dim: int, precision: float
) -> tuple[Array, Array, Array]:
    """One arm's mean and covariance from all data at once, and its weighted squares of residuals.

    Args:
        rows: Maps the index of a block of data to features (n, dim) and rewards (n,); rows of
            zeros do not count.
        blocks: Number of blocks.
        dim: Number of features.
        precision: Precision of the prior.
    """

    def add_moments(i: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
        z, rewards = rows(i)
        return sums[0] + z.T @ z, sums[1] + rewards @ z

    def add_squares(i: Array, squares: Array) -> Array:
        z, rewards = rows(i)
        return squares + jnp.sum((rewards - z @ mean) ** 2)

    start = precision * jnp.eye(dim), jnp.zeros(dim)
    information, moment = jax.lax.fori_loop(0, blocks, add_moments, start)
    covariance = inverse(information)
    mean = covariance @ moment
    mean += covariance @ (moment - information @ mean)  # one step of refinement, for lost digits
    squares = jax.lax.fori_loop(0, blocks, add_squares, precision * mean @ mean)
    return mean, covariance, squares


def inverse(matrix: Array) -> Array:
    """Of a symmetric positive definite matrix, by Gauss-Jordan elimination in place.

    JAX's batched calls of LAPACK wait for XLA's threads, and two blocks at a time have been seen to
    deadlock. Inverting by halves would be faster, but loses the digits that features of very
    different sizes need.
    """
    rows = jnp.arange(matrix.shape[0])

    def eliminate(k: Array, a: Array) -> Array:
        here = rows == k
        pivot, column = 1 / a[k, k], a[:, k]
        row = jnp.where(here, pivot, a[k] * pivot)
        others = jnp.where(here[None, :], 0.0, a) - jnp.outer(column, row)
        return jnp.where(here[:, None], row, others)

    return jax.lax.fori_loop(0, matrix.shape[0], eliminate, matrix)
