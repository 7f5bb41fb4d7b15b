"""RMSprop with PyTorch's constants, for networks that learn from every pull.

    v <- 0.99 v + 0.01 g^2;   w <- w - rate g / (sqrt(v) + 1e-8)

A processor computes roots and divisions in the same unit, and the update waits for it. Here that
unit computes only the roots: a reciprocal is a guess from the number's bits, refined by
multiplications, with a rounding error like that of a division. optax.rmsprop does the same with
divisions.
"""

import jax
import jax.numpy as jnp
import optax
from jax import Array

DECAY, EPSILON = 0.99, 1e-8
LARGEST_ROOT = 2e19  # where v is infinite
GUESS = 0x7EF311C7  # less the bits of a number: those of its reciprocal, to about 5%


def rmsprop(learning_rate: float) -> optax.GradientTransformation:
    return optax.chain(scale_by_rms(), optax.scale_by_learning_rate(learning_rate))


def scale_by_rms() -> optax.GradientTransformation:
    """g / (sqrt(v) + 1e-8)"""

    def init(weights: optax.Params) -> optax.ScaleByRmsState:
        return optax.ScaleByRmsState(jax.tree.map(jnp.zeros_like, weights))

    def update(
        gradient: optax.Updates, state: optax.ScaleByRmsState, weights: optax.Params = None
    ) -> tuple[optax.Updates, optax.ScaleByRmsState]:
        squares = jax.tree.map(lambda v, g: DECAY * v + (1 - DECAY) * g**2, state.nu, gradient)
        scaled = jax.tree.map(lambda v, g: g * reciprocal(root(v) + EPSILON), squares, gradient)
        return scaled, optax.ScaleByRmsState(squares)

    return optax.GradientTransformation(init, update)


def root(v: Array) -> Array:
    return jnp.minimum(jnp.sqrt(v), LARGEST_ROOT)


def reciprocal(x: Array) -> Array:
    """1 / x for float32 from 1e-37 to 1e37, to about 1e-7 of it."""
    if x.dtype != jnp.float32:
        return 1 / x
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    y = jax.lax.bitcast_convert_type(GUESS - bits, jnp.float32)
    y *= 2 - x * y  # squares the error
    error = 1 - x * y
    return y + y * (error + error**2)  # cubes it
