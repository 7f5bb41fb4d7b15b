"""A law that gives every arm a chance by how far it is behind: inverse gap weighting.

    p_k = 1 / (n + n (gap_k / unit)^3)  of n arms;   the best one has the rest

Abe & Long (1999), and Foster & Rakhlin (2020), who have a power of 1. With a power of 3 an arm that
is clearly behind is hardly ever pulled, and still has a chance, known exactly.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.parts.arms import greedy_law

POWER = 3


def inverse_gap_law(scores: Array, unit: Array, available: Array) -> Array:
    """The law of the scores over the available arms; without a unit all mass on the best."""
    best = greedy_law(scores, available)
    gap = jnp.sum(best * scores) - scores
    behind = available & (best == 0)
    chances = jnp.where(behind, 1 / (jnp.sum(available) * (1 + (gap / unit) ** POWER)), 0.0)
    return chances + best * (1 - jnp.sum(chances))
