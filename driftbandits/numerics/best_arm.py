"""The probability that each of several independent scores is the highest.

    P(arm i is best) = integral f_i(x) prod_{j != i} F_j(x) dx

by Gauss-Legendre quadrature on the cells between the nodes of all arms. Every arm brings nodes that
cover its own bulk, so that a narrow density beside a wide one is resolved; the F_j are integrated
along on the same cells by collocation. Densities need no normalisation.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

ORDER = 4


def collocation() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """On [0, 1]: the Gauss points, their weights, and weights of the integral up to each point."""
    points, weights = np.polynomial.legendre.leggauss(ORDER)
    points, weights = (points + 1) / 2, weights / 2
    powers = np.arange(ORDER)
    monomials = points[:, None] ** powers
    integrals = points[:, None] ** (powers + 1) / (powers + 1)
    return points, weights, integrals @ np.linalg.inv(monomials)


POINTS, WEIGHTS, PARTIAL = collocation()


def best_arm_probabilities(
    log_density: Callable[[Array], Array], nodes: Array, available: Array
) -> Array:
    """P(best) of every arm, zero for those not available.

    Args:
        log_density: takes x (cells, order) to the log densities (num_arms, cells, order),
            each up to a constant that keeps its highest value near 0.
        nodes: (num_arms, n), places that cover each arm's density.
        available: (num_arms,) bool.
    """
    somewhere = nodes[jnp.argmax(available)]
    edges = jnp.sort(jnp.where(available[:, None], nodes, somewhere).ravel())
    widths = jnp.diff(edges)
    x = edges[:-1, None] + widths[:, None] * jnp.asarray(POINTS, jnp.float32)
    density = jnp.exp(log_density(x)) * widths[:, None]
    mass = jnp.sum(density * jnp.asarray(WEIGHTS, jnp.float32), axis=-1)
    total = jnp.sum(mass, axis=-1)
    before = jnp.cumsum(mass, axis=-1) - mass
    below = before[..., None] + density @ jnp.asarray(PARTIAL.T, jnp.float32)
    below = jnp.where(available[:, None, None], below / total[:, None, None], 1.0)
    wins = density / total[:, None, None] * product_of_others(below)
    probabilities = jnp.sum(wins * jnp.asarray(WEIGHTS, jnp.float32), axis=(1, 2))
    probabilities = jnp.where(available, probabilities, 0.0)
    return probabilities / jnp.sum(probabilities)


def product_of_others(factors: Array) -> Array:
    """prod_{j != i} factors_j along the first axis, without a division."""
    ones = jnp.ones_like(factors[:1])
    left = jnp.cumprod(jnp.concatenate([ones, factors[:-1]]), axis=0)
    right = jnp.cumprod(jnp.concatenate([ones, factors[:0:-1]]), axis=0)[::-1]
    return left * right


def best_score_probabilities(
    centres: Array, scales: Array, available: Array, freedom: Array | None = None
) -> Array:
    """P(best) for independent normal scores, or Student's with `freedom` degrees for each arm."""
    highest = jnp.max(centres, where=available, initial=-jnp.inf)
    centres = (centres - highest)[:, None]
    # Nodes must differ in float32; a density that is narrower does not win from afar.
    scales = jnp.maximum(scales[:, None], 1e-5 * jnp.abs(centres) + 1e-25)

    def log_density(x: Array) -> Array:
        square = ((x - centres[..., None]) / scales[..., None]) ** 2
        if freedom is None:
            return -square / 2
        dof = freedom[:, None, None]
        return -(dof + 1) / 2 * jnp.log1p(square / dof)

    reach = jnp.sinh(jnp.linspace(-4.5, 4.5, 53))
    return best_arm_probabilities(log_density, centres + scales * reach, available)
