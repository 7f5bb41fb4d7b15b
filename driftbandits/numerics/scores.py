"""Thompson sampling by independent normal scores: the best one, and every arm's probability."""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Key
from driftbandits.numerics.arms import require_some
from driftbandits.numerics.best_arm import best_score_probabilities
from driftbandits.numerics.made_again import arm_or_known


def best_score(key: Key, mean: Array, deviation: Array, available: Array) -> tuple[Array, Array]:
    """The arm of the highest score, score_k ~ N(mean_k, deviation_k^2), and every arm's chance.

    Scores are relative to the best mean: far from zero float32 would round small deviations away.
    """
    require_some(available)
    best = jnp.max(mean, where=available, initial=-jnp.inf)
    scores = (mean - best) + deviation * jax.random.normal(key, mean.shape)
    arm = jnp.argmax(jnp.where(available, scores, -jnp.inf)).astype(jnp.int32)
    return arm_or_known(arm), best_score_probabilities(mean, deviation, available)
