"""Ridge regressions that forget, one per arm, stored as weighted sums.

    V_k = lambda I + sum w z z',   theta_k = V_k^-1 sum w r z

The sums do not include the ridge: a discount or a window leaves lambda I as it is. (Discounting V_k
and adding (1 - discount) lambda I back is the same.) A discount changes every V_k by more than one
rank at every step, so `solve` starts from scratch: O(num_arms dim^3). A window changes only two
arms, so the `fit` of the others can be reused.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec
from driftbandits.numerics.horizon import horizon_of
from driftbandits.numerics.linear import LinearPosterior, inverse


class Sums(NamedTuple):
    information: Array  # (num_arms, dim, dim) float32, sum w z z'
    moment: Array  # (num_arms, dim) float32, sum w r z


def no_sums(num_arms: int, dim: int) -> Sums:
    return Sums(jnp.zeros((num_arms, dim, dim)), jnp.zeros((num_arms, dim)))


def add(sums: Sums, arm: Array, z: Array, reward: Array, weight: Array | float = 1.0) -> Sums:
    """The sums after one reward more, or with weight -1 after one less."""
    weights = weight * (jnp.arange(sums.moment.shape[0]) == arm)
    return Sums(
        sums.information + weights[:, None, None] * jnp.outer(z, z),
        sums.moment + weights[:, None] * (reward * z),
    )


def faded(sums: Sums, discount: float) -> Sums:
    """All weights times the discount."""
    return Sums(discount * sums.information, discount * sums.moment)


def solve(information: Array, z: Array, precision: float) -> Array:
    """V_k^-1 z of every arm: (num_arms, dim).

    Its product with the moment is z' theta_k, that with z is the spread z' V_k^-1 z.
    """
    ridged = information + precision * jnp.eye(z.size)
    inverted = jax.vmap(inverse)(ridged)
    solution = inverted @ z
    rest = z - jnp.einsum("kij,kj->ki", ridged, solution)
    return solution + jnp.einsum("kij,kj->ki", inverted, rest)  # refined once


def fit(sums: Sums, precision: float) -> LinearPosterior:
    """theta_k and V_k^-1 of every arm in the sums."""
    information, moment = sums
    ridged = information + precision * jnp.eye(moment.shape[1])
    covariance = jax.vmap(inverse)(ridged)
    mean = jnp.einsum("kij,kj->ki", covariance, moment)
    rest = moment - jnp.einsum("kij,kj->ki", ridged, mean)
    return LinearPosterior(mean + jnp.einsum("kij,kj->ki", covariance, rest), covariance)


def memory_length(spec: BanditSpec) -> float:
    """How many rewards should count if the coefficients vary by 1 over the horizon."""
    horizon = horizon_of(spec)
    return min(((spec.context_dim + 1) * horizon) ** (2 / 3), horizon)
