"""Networks with one hidden layer that predict every arm's reward, with and without features.

Without features of arms, f_k(x) = sum_j v_j max(0, w_kj' x) with x = (context, 1). An arm has
first-layer weights w_k of its own, which is the same as one first layer whose input holds x in the
arm's block and zeros elsewhere.

With features, all arms share first-layer weights s_j of z_k = (1, features_k) x (context, 1), the
input of the linear policies' hybrid model, which begins with x. The input holds x in the arm's
block, too, as far as arms may deviate from what their features say:

    f_k = sum_j v_j max(0, s_j' z_k + sqrt(deviation) w_kj' x)
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Key, Observation
from driftbandits.numerics.hybrid import features_of, sizes


class Network(NamedTuple):
    """Its weights are a pytree; leaves with one axis for the arms have it first."""

    size: int  # numbers in an input
    inputs: Callable[[Observation], Array]  # (size,) for all arms, or (num_arms, size)
    init: Callable[[Key], Any]
    # The output of every arm, and its gradient squared, whose leaves are (num_arms, ...).
    outputs_and_squares: Callable[[Any, Array], tuple[Array, Any]]
    # Of past inputs, (rows, size), and arms, (rows,); the arm num_arms is one that has left.
    outputs: Callable[[Any, Array, Array], Array]


class Weights(NamedTuple):
    first: Array  # (num_arms, hidden, inputs) float32, w_kj
    last: Array  # (hidden,) float32, v_j


class FeatureWeights(NamedTuple):
    shared: Array  # (hidden, (1 + arm_dim) (context_dim + 1)) float32, s_j
    own: Array  # (num_arms, hidden, context_dim + 1) float32, w_kj; without deviation (..., 0)
    last: Array  # (hidden,) float32, v_j


def context_network(spec: BanditSpec, hidden: int) -> Network:
    """Arms share the last layer only."""
    num_arms, size = spec.num_arms, spec.context_dim + 1

    def inputs(observation: Observation) -> Array:
        return jnp.append(observation.context, 1.0)

    def init(key: Key) -> Weights:
        # An arm's block counts its own inputs, as the others are zero.
        return Weights(*layers(key, (num_arms, hidden, size)))

    def outputs_and_squares(weights: Weights, inputs: Array) -> tuple[Array, Weights]:
        units = jax.nn.relu(weights.first @ inputs)
        slopes = jnp.where(units > 0, weights.last, 0.0)
        squares = Weights(slopes[..., None] ** 2 * inputs**2, units**2)
        return units @ weights.last, squares

    def outputs(weights: Weights, inputs: Array, arms: Array) -> Array:
        units = jax.nn.relu(through_blocks(weights.first, inputs, arms))
        return units @ weights.last

    return Network(size, inputs, init, outputs_and_squares, outputs)


def feature_network(spec: BanditSpec, hidden: int, deviation: float) -> Network:
    """Arms share all weights but those of their deviations, which are zero at first."""
    num_arms, (size, of_context) = spec.num_arms, sizes(spec)
    own_size = of_context if deviation else 0
    scale = math.sqrt(deviation)

    def inputs(observation: Observation) -> Array:
        return features_of(observation, spec)

    def own_part(inputs: Array) -> Array:
        return scale * inputs[..., :own_size]

    def init(key: Key) -> FeatureWeights:
        shared, last = layers(key, (hidden, size))
        return FeatureWeights(shared, jnp.zeros((num_arms, hidden, own_size)), last)

    def outputs_and_squares(weights: FeatureWeights, inputs: Array) -> tuple[Array, FeatureWeights]:
        own = own_part(inputs[0])  # that of the context, which all arms share
        units = jax.nn.relu(inputs @ weights.shared.T + weights.own @ own)
        slopes = jnp.where(units > 0, weights.last, 0.0)[..., None] ** 2
        squares = FeatureWeights(slopes * inputs[:, None, :] ** 2, slopes * own**2, units**2)
        return units @ weights.last, squares

    def outputs(weights: FeatureWeights, inputs: Array, arms: Array) -> Array:
        own = through_blocks(weights.own, own_part(inputs), arms)
        return jax.nn.relu(inputs @ weights.shared.T + own) @ weights.last

    return Network(size, inputs, init, outputs_and_squares, outputs)


def layers(key: Key, first: tuple[int, ...]) -> tuple[Array, Array]:
    """PyTorch's initial weights of a first layer, (..., hidden, inputs), and of the last one."""
    first_key, last_key = jax.random.split(key)
    *_, hidden, inputs = first
    bound, last_bound = inputs**-0.5, hidden**-0.5
    return (
        jax.random.uniform(first_key, first, minval=-bound, maxval=bound),
        jax.random.uniform(last_key, (hidden,), minval=-last_bound, maxval=last_bound),
    )


def through_blocks(first: Array, inputs: Array, arms: Array) -> Array:
    """The arms' own first layers of some inputs, as one matrix product: (rows, hidden)."""
    num_arms, hidden, size = first.shape
    own = arms[:, None] == jnp.arange(num_arms)
    blocks = own[:, :, None] * inputs[:, None, :]
    dense = first.transpose(0, 2, 1).reshape(num_arms * size, hidden)
    return blocks.reshape(len(arms), -1) @ dense
