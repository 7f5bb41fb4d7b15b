"""Experts weighed by how well each predicts, with a noise level of their own.

    weight_j *= Student's density of the error e_j, with variance noise_j (1 + v_j)
    weights   = (1 - share) weights + share * prior
    noise_j   = (sum memory^age e_j^2 / (1 + v_j) + doubt * spread) / (sum memory^age + doubt)

v_j is the variance of the prediction in units of noise_j, `spread` the variance of all rewards. The
share lets an expert that was wrong for long come back: Herbster & Warmuth (1998).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Experts(NamedTuple):
    weights: Array  # (experts,) float32, with the sum 1
    squares: Array  # (experts,) float32, of errors, faded
    heard: Array  # () float32, of errors, faded
    noise: Array  # (experts,) float32, variance of a reward


def start(prior: Array) -> Experts:
    return Experts(prior, jnp.zeros(prior.size), jnp.zeros(()), jnp.ones(prior.size))


def weigh(
    experts: Experts, errors: Array, variance: Array, doubt: float, share: float, prior: Array
) -> Array:
    """The weights after one more reward."""
    density = log_student(errors, experts.noise * (1 + variance), experts.heard + doubt)
    weights = jax.nn.softmax(jnp.log(experts.weights) + density)
    return (1 - share) * weights + share * prior


def hear(
    experts: Experts, errors: Array, variance: Array, doubt: float, memory: float, spread: Array
) -> Experts:
    """The noise levels after one more reward."""
    squares = memory * experts.squares + errors**2 / (1 + variance)
    heard = memory * experts.heard + 1
    noise = (squares + doubt * spread) / (heard + doubt)
    return experts._replace(squares=squares, heard=heard, noise=noise)


def log_student(x: Array, variance: Array, freedom: Array) -> Array:
    """Student's log density, without what depends on the degrees of freedom alone."""
    return -0.5 * jnp.log(variance) - (freedom + 1) / 2 * jnp.log1p(x**2 / (variance * freedom))
