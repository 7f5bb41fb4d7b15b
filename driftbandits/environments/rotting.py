"""The Rotting bandit: the better arm wears out by being pulled.

    mean_1 = 0.5;   mean_2 = 1.0 for its first 7500 pulls, then 0.4;   Gaussian, variance 0.2

Levine, Crammer & Mannor (2017), "Rotting bandits", as in Rotman & Wolf (2023), section 4.
"""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import nothing_to_see

DEVIATION = 0.2**0.5
LIFE = 7500


def rotting() -> Environment:
    """Two Gaussian arms; the better one falls from 1.0 to 0.4 after 7500 pulls of it."""

    def init(key: Key) -> Array:
        return jnp.zeros(2, jnp.int32)

    def observe(key: Key, pulls: Array) -> Observation:
        return nothing_to_see(2)

    def rewards(key: Key, pulls: Array, context: Array) -> Rewards:
        mean = jnp.stack([jnp.float32(0.5), jnp.where(pulls[1] < LIFE, 1.0, 0.4)])
        return Rewards(mean + DEVIATION * jax.random.normal(key, (2,)), mean)

    def advance(pulls: Array, arm: Array) -> Array:
        return pulls + (jnp.arange(2) == arm)

    return Environment(BanditSpec(2, noise=DEVIATION), init, observe, rewards, advance)
