"""Experts weighted by how well each predicts, each with its own noise level.

    weight_j *= Student's density of the error e_j, with variance noise_j (1 + v_j)
    weights   = (1 - share) weights + share * belief
    noise_j   = (sum memory^age e_j^2 / (1 + v_j) + doubt * V) / (sum memory^age + doubt)

v_j is the variance of the prediction in units of noise_j, V the variance of all rewards. The share
lets an expert that was wrong for a long time recover: Herbster & Warmuth (1998).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Experts(NamedTuple):
    weights: Array  # (experts,) float32, with the sum 1
    squared_errors: Array  # (experts,) float32, faded sums
    error_count: Array  # () float32, the faded number of errors in those sums
    noise: Array  # (experts,) float32, variance of a reward


def start(belief: Array) -> Experts:
    return Experts(belief, jnp.zeros(belief.size), jnp.zeros(()), jnp.ones(belief.size))


def update_weights(
    experts: Experts,
    errors: Array,
    variance: Array,
    *,
    doubt: float,
    share: float,
    belief: Array,
) -> Array:
    """The weights after one more reward."""
    density = log_student(errors, experts.noise * (1 + variance), experts.error_count + doubt)
    weights = jax.nn.softmax(jnp.log(experts.weights) + density)
    return (1 - share) * weights + share * belief


def update_noise(
    experts: Experts,
    errors: Array,
    variance: Array,
    *,
    doubt: float,
    memory: float,
    reward_variance: Array,
) -> Experts:
    """The noise levels after one more reward."""
    squared_errors = memory * experts.squared_errors + errors**2 / (1 + variance)
    error_count = memory * experts.error_count + 1
    noise = (squared_errors + doubt * reward_variance) / (error_count + doubt)
    return experts._replace(squared_errors=squared_errors, error_count=error_count, noise=noise)


def log_student(x: Array, variance: Array, freedom: Array) -> Array:
    """Student's log density, without the terms that depend only on the degrees of freedom."""
    return -0.5 * jnp.log(variance) - (freedom + 1) / 2 * jnp.log1p(x**2 / (variance * freedom))
