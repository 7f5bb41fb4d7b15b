"""The layers of the neural policies, with PyTorch's conventions.

r = s(W_ir x + b_ir + W_hr h + b_hr)        z = s(W_iz x + b_iz + W_hz h + b_hz)
n = tanh(W_in x + b_in + r * (W_hn h + b_hn))          h' = (1 - z) * n + z * h
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Key
from driftbandits.numerics.random_keys import computed_once


class Affine(NamedTuple):
    weights: Array  # (outputs, inputs)
    bias: Array  # (outputs,)


class Gru(NamedTuple):
    """One layer; the rows of the reset, update and new gates follow each other."""

    inputs: Affine  # (3 * hidden, inputs)
    hidden: Affine  # (3 * hidden, hidden)


def init_affine(key: Key, inputs: int, outputs: int, bound: float) -> Affine:
    """Weights and bias uniform in [-bound, bound]."""
    weights_key, bias_key = jax.random.split(key)
    weights = jax.random.uniform(weights_key, (outputs, inputs), minval=-bound, maxval=bound)
    return Affine(weights, jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound))


def init_gru(key: Key, inputs: int, hidden: int) -> Gru:
    inputs_key, hidden_key = jax.random.split(key)
    bound = hidden**-0.5
    return Gru(
        init_affine(inputs_key, inputs, 3 * hidden, bound),
        init_affine(hidden_key, hidden, 3 * hidden, bound),
    )


def affine(layer: Affine, x: Array) -> Array:
    """The layer's output for a vector, or for every column of a matrix."""
    bias = layer.bias if x.ndim == 1 else layer.bias[:, None]
    return layer.weights @ x + bias


def gru(layer: Gru, x: Array, h: Array) -> Array:
    """The next hidden state."""
    from_input = jnp.split(affine(layer.inputs, x), 3)
    from_hidden = jnp.split(affine(layer.hidden, h), 3)
    reset = jax.nn.sigmoid(from_input[0] + from_hidden[0])
    update = jax.nn.sigmoid(from_input[1] + from_hidden[1])
    new = jnp.tanh(from_input[2] + reset * from_hidden[2])
    return (1 - update) * new + update * h


def dropout_masks(key: Key, share: float | None, shape: tuple[int, ...]) -> Array:
    """Inverted dropout as factors: 1 / share for the share of units that stay, else 0.

    None drops nothing.
    """
    if share is None:
        return jnp.ones(shape)
    return computed_once(lambda: jax.random.bernoulli(key, share, shape) / share)
