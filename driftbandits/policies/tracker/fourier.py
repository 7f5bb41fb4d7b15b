"""Random Fourier features: a smooth function of the context as a linear one of these.

    sqrt(2 / n) cos(w_i' x + b_i),   w_i ~ N(0, I / length^2),   b_i ~ U(0, 2 pi)

Rahimi & Recht (2007), "Random features for large-scale kernel machines".
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Key


class Waves(NamedTuple):
    directions: Array  # (features, dim) float32
    phases: Array  # (features,) float32


def random_waves(key: Key, features: int, dim: int, length: float) -> Waves:
    directions_key, phases_key = jax.random.split(key)
    directions = jax.random.normal(directions_key, (features, dim)) / length
    return Waves(directions, jax.random.uniform(phases_key, (features,), maxval=2 * jnp.pi))


def wave_features(waves: Waves, x: Array) -> Array:
    count = waves.phases.size
    return (2 / max(count, 1)) ** 0.5 * jnp.cos(waves.directions @ x + waves.phases)
