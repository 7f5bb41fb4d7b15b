"""Cells that cover the maximum of independent scores: few, whatever the number of arms.

Every arm has its bulk between a lower and an upper end. No score below the highest of all lower
ends is the best. So the bulk of every arm that matters contains that point, and an arm that reaches
a distance d above it is at least about d / 10 wide: cells that grow in proportion to d resolve it.

Then the cells are redistributed by how much each covers

    in normal scores z of the arm that changes most, so that the narrowest density is resolved;
    in y = -log(-log G), G = prod_j F_j, through which every maximum runs evenly (Gumbel).

For this the approximation F_j = Phi(z_j) is enough. Cells where G is almost zero are dropped.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

CELLS = 32
EVEN = 0.05  # the least demand of a cell, so that tails are integrated, too
FURTHEST = 5.0  # normal score beyond which an arm's density does not matter
NOTHING, EVERYTHING = -5.5, 12.0  # y where G is almost 0 (for rough z), or almost 1


class Scores(NamedTuple):
    """Independent scores with one mode each. Steps are distances from the arm's centre."""

    centres: Array  # (num_arms,) float32; those around the best one should be near zero
    scales: Array  # (num_arms,) float32, widths of the modes
    lower: Array  # (num_arms,) float32, the step to where the bulk begins, negative
    upper: Array  # (num_arms,) float32, the step to where the bulk ends
    available: Array  # (num_arms,) bool
    log_density: Callable[[Array], Array]  # of steps (num_arms, n); 0 at the mode
    normal_score: Callable[[Array], Array]  # of steps (num_arms, n); rough, but rises with them


def cells_of_maximum(scores: Scores, rounds: int) -> Array:
    """(CELLS + 1,) edges; the maximum is almost never below the first of them."""
    return jax.lax.fori_loop(0, rounds, lambda _, x: shared_out(scores, x), growing_cells(scores))


def growing_cells(scores: Scores) -> Array:
    """Edges from the highest lower end up, first as narrow as the narrowest arm, then growing."""
    ends = scores.centres + scores.upper
    available = scores.available
    start = jnp.max(scores.centres + scores.lower, where=available, initial=-jnp.inf)
    stop = jnp.max(ends, where=available, initial=-jnp.inf)
    narrowest = jnp.min(scores.scales, where=available & (ends > start), initial=jnp.inf)
    shares = np.linspace(0, 1, CELLS + 1, dtype=np.float32)
    return start + narrowest * jnp.expm1(shares * jnp.log1p((stop - start) / narrowest))


def shared_out(scores: Scores, x: Array) -> Array:
    """New edges, with the same demand in each cell."""
    z, y = rough_scores(scores, x)
    z, clipped = jnp.clip(z, -FURTHEST, FURTHEST), jnp.clip(y, NOTHING, EVERYTHING)
    rise = jnp.max(z[:, 1:] - z[:, :-1], axis=0, where=scores.available[:, None], initial=0.0)
    matters = y[1:] > NOTHING
    demand = jnp.where(matters, rise + clipped[1:] - clipped[:-1] + EVEN, 0.0)
    levels = np.linspace(0, 1, CELLS + 1, dtype=np.float32)[:, None] * jnp.sum(demand)
    share = jnp.clip((levels - sum_before(demand)) / jnp.maximum(demand, EVEN), 0.0, 1.0)
    return x[0] + jnp.sum(jnp.where(matters, share, 1.0) * (x[1:] - x[:-1]), axis=-1)


def rough_scores(scores: Scores, x: Array) -> tuple[Array, Array]:
    """z of every arm at x (num_arms, n), and y (n,)."""
    step = x - scores.centres[:, None]
    z = jnp.clip(scores.normal_score(step), -12.0, 12.0)
    z = jnp.where(step < scores.lower[:, None], -12.0, z)
    z = jnp.where(step > scores.upper[:, None], 12.0, z)
    logit = z * (1.5976 + 0.07056 * z * z)  # of Phi(z), to three digits
    minus_log = jnp.maximum(-logit, 0.0) + np.float32(np.log(2)) * jnp.exp(-jnp.abs(logit))
    total = jnp.sum(minus_log, axis=0, where=scores.available[:, None])
    return z, -jnp.log(total + 1e-30)


def sum_before(values: Array) -> Array:
    """Along the last axis, the sum of all earlier values."""
    # XLA's cumulative sum takes longer to compile and to run.
    size = values.shape[-1]
    return values @ np.triu(np.ones((size, size), np.float32), 1)
