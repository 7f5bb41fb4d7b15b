"""The probability that each of several independent scores is the highest.

    P(arm i is best) = integral f_i(x) prod_{j != i} F_j(x) dx = integral f_i / F_i G dx,
    G = prod_j F_j, the distribution of the maximum

by Gauss-Legendre quadrature on a few cells (cells.py) that cover the maximum. The F_j are
integrated on the same cells by collocation, starting from the mass below the first cell, which is
integrated for each arm on its own points. So the work is proportional to the number of arms.
Densities need not be normalised.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.numerics.cells import CELLS, Scores, cells_of_maximum, sum_before

ORDER = 4
OWN_POINTS = 16
LEAST = 1e-20  # least F, so that its inverse is finite


def gauss(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(order)
    return (points + 1) / 2, weights / 2


def collocation() -> np.ndarray:
    """Weights of the integral from 0 up to each Gauss point."""
    points, powers = gauss(ORDER)[0][:, None], np.arange(ORDER)
    return points ** (powers + 1) / (powers + 1) @ np.linalg.inv(points**powers)


POINTS, WEIGHTS = (v.astype(np.float32)[:, None] for v in gauss(ORDER))
PARTIAL = collocation().astype(np.float32)[..., None]
OWN, OWN_WEIGHTS = (v.astype(np.float32) for v in gauss(OWN_POINTS))


def best_arm_probabilities(scores: Scores, rounds: int = 1) -> Array:
    """P(best) of every arm, zero for those not available.

    `rounds` is how often the cells are redistributed: more than once if tails are long.
    """
    edges = cells_of_maximum(scores, rounds)
    widths = edges[1:] - edges[:-1]
    x = (edges[:-1] + widths * POINTS).ravel()
    own_steps, own_weights = points_below(scores, edges[0])
    steps = jnp.concatenate([own_steps, x - scores.centres[:, None]], axis=1)
    density = jnp.exp(scores.log_density(steps))
    first = jnp.sum(density[:, :OWN_POINTS] * own_weights, axis=1)
    density = density[:, OWN_POINTS:].reshape(-1, ORDER, CELLS) * widths
    mass = jnp.sum(density * WEIGHTS, axis=1)
    total = (first + jnp.sum(mass, axis=1))[:, None, None]
    below = (first[:, None] + sum_before(mass))[:, None, :]
    below += sum(PARTIAL[:, q] * density[:, q, None, :] for q in range(ORDER))
    below = jnp.maximum(below / total, LEAST)
    maximum = jnp.prod(below, axis=0, where=scores.available[:, None, None])
    wins = jnp.sum(density / (total * below) * (maximum * WEIGHTS), axis=(1, 2))
    wins = jnp.where(scores.available, wins, 0.0)
    return wins / jnp.sum(wins)


def points_below(scores: Scores, end: Array) -> tuple[Array, Array]:
    """Steps and weights (num_arms, OWN_POINTS) of an integral over each arm's bulk below `end`.

    They are close together at the mode: step = scale sinh(u), u at the points of Gauss.
    """
    last = jnp.clip(end - scores.centres, scores.lower, scores.upper)
    ends = jnp.stack([scores.lower, last]) / scores.scales
    size = jnp.abs(ends)
    u, v = jnp.sign(ends) * jnp.log(size + jnp.sqrt(1 + size * size))  # jnp.arcsinh compiles slowly
    up = jnp.exp(u[:, None] + (v - u)[:, None] * OWN)
    down, half = 1 / up, scores.scales[:, None] / 2
    return half * (up - down), half * (up + down) * (v - u)[:, None] * OWN_WEIGHTS


LOWEST, HIGHEST = 22.0, 33.0  # squared normal scores: P(z < -4.7) = 1e-6, P(z > 5.7) = 5e-9
LEAST_SCALE = 1e-25  # of a score without any spread


def best_score_probabilities(
    centres: Array, scales: Array, available: Array, freedom: Array | None = None
) -> Array:
    """P(best) for independent normal scores, or Student's with `freedom` degrees for each arm."""
    scales = jnp.maximum(scales, LEAST_SCALE)
    dof = None if freedom is None else freedom[:, None]

    def log_density(step: Array) -> Array:
        square = (step / scales[:, None]) ** 2
        return -square / 2 if dof is None else -(dof + 1) / 2 * jnp.log1p(square / dof)

    def normal_score(step: Array) -> Array:
        z = step / scales[:, None]
        return z if dof is None else jnp.sign(z) * jnp.sqrt(dof * jnp.log1p(z * z / dof))

    def reach(square: float) -> Array:
        """The step with this squared normal score."""
        if freedom is None:
            return scales * np.float32(np.sqrt(square))
        return scales * jnp.sqrt(freedom * jnp.expm1(jnp.minimum(square / freedom, 80.0)))

    # Relative to the arm with the highest lower end, float32 can tell its rivals apart.
    lower, upper = -reach(LOWEST), reach(HIGHEST)
    centres -= centres[jnp.argmax(jnp.where(available, centres + lower, -jnp.inf))]
    scores = Scores(centres, scales, lower, upper, available, log_density, normal_score)
    return best_arm_probabilities(scores, rounds=1 if freedom is None else 3)
