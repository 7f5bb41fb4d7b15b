"""Inverse gap weighting: every arm has a chance, depending on how far it is behind.

    p_k = 1 / (n + n (gap_k / unit)^3)  of n arms;   the best one has the rest

Abe & Long (1999); Foster & Rakhlin (2020), who use a power of 1. With a power of 3 an arm that is
clearly behind is hardly ever pulled, but its probability is above zero and known exactly.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits.numerics.arms import greedy_probabilities

POWER = 3


def inverse_gap_probabilities(scores: Array, unit: Array, available: Array) -> Array:
    """Over the available arms; with a unit of 0 all mass is on the best."""
    best = greedy_probabilities(scores, available)
    gap = jnp.sum(best * scores) - scores
    behind = available & (best == 0)
    others = jnp.where(behind, 1 / (jnp.sum(available) * (1 + (gap / unit) ** POWER)), 0.0)
    return others + best * (1 - jnp.sum(others))
