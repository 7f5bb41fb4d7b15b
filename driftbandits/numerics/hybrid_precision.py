"""float64 for one computation, whatever the configuration of JAX, between states of float32.

A sum of float64 is stored as two float32: 48 of its 53 binary digits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap

from driftbandits.core import PyTree

Result = TypeVar("Result")


class Split(NamedTuple):
    """Numbers as sums of two float32."""

    high: Any  # a tree of float32, the nearest ones
    low: Any  # the same tree, what they miss


def split(numbers: PyTree) -> Split:
    """From float64, within `in_float64`."""
    high = rounded(numbers)
    return Split(high, rounded(jax.tree.map(jnp.subtract, numbers, high)))


def joined(numbers: Split) -> Any:
    """As float64, within `in_float64`."""
    return jax.tree.map(jnp.add, *numbers)


def in_float64(work: Callable[..., Result]) -> Callable[..., Result]:
    """The function with every float of its arguments as float64, and of its result as float32.

    JAX batches a loop after its body was traced, when float64 is off again, and would round. So the
    function is batched by a rule of its own, which traces it once more.
    """

    @custom_vmap
    def run(*arguments: PyTree) -> Any:
        with jax.enable_x64(True):
            return rounded(work(*widened(arguments)))

    @run.def_vmap
    def run_batch(size: int, is_batched: Any, *arguments: PyTree) -> tuple[Any, Any]:
        axes = jax.tree.map(lambda batched: 0 if batched else None, tuple(is_batched))
        results = in_float64(jax.vmap(work, axes))(*arguments)
        return results, jax.tree.map(lambda _: True, results)

    return run


def widened(tree: PyTree) -> Any:
    return jax.tree.map(lambda leaf: as_type(jnp.asarray(leaf), jnp.float64), tree)


def rounded(tree: PyTree) -> Any:
    return jax.tree.map(lambda leaf: as_type(leaf, jnp.float32), tree)


def as_type(leaf: Array, dtype: Any) -> Array:
    return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf
