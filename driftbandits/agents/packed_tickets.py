"""A decision's ticket as one row of 32-bit words, so that many lie in one table of the host."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import PyTree
from driftbandits.numerics.random_keys import is_key, key_of, without_key

WORD = np.uint32


class Layout(NamedTuple):
    """Which words of a row belong to which leaf."""

    leaves: list[jax.ShapeDtypeStruct]  # random keys as the words that they are made of
    keys: list[bool]  # which leaves those are
    structure: jax.tree_util.PyTreeDef

    @property
    def width(self) -> int:
        return sum(math.prod(leaf.shape) for leaf in self.leaves)


def layout_of(tree: PyTree) -> Layout:
    given, structure = jax.tree.flatten(tree)
    # With a function of its own, which JAX forgets: of one that stays it would keep every call.
    leaves = jax.eval_shape(lambda leaves: [without_key(leaf) for leaf in leaves], given)
    for leaf in leaves:
        assert leaf.dtype == bool or leaf.dtype.itemsize == 4, "a leaf of another width"
    return Layout(leaves, [is_key(leaf) for leaf in given], structure)


def pack(tree: PyTree) -> Array:
    """(width,) uint32"""
    words = [as_words(jnp.ravel(without_key(leaf))) for leaf in jax.tree.leaves(tree)]
    return jnp.concatenate(words) if words else jnp.zeros(0, WORD)


def as_words(flat: Array) -> Array:
    if flat.dtype == bool:
        return flat.astype(WORD)
    return jax.lax.bitcast_convert_type(flat, WORD)


def unpack(layout: Layout, words: Array) -> PyTree:
    found, first = [], 0
    for leaf, key in zip(layout.leaves, layout.keys, strict=True):
        size = math.prod(leaf.shape)
        part = words[first : first + size]
        value = part.astype(bool) if leaf.dtype == bool else as_type(part, leaf.dtype)
        value = value.reshape(leaf.shape)
        found.append(key_of(value) if key else value)
        first += size
    return jax.tree.unflatten(layout.structure, found)


def as_type(words: Array, dtype: np.dtype) -> Array:
    return words if dtype == WORD else jax.lax.bitcast_convert_type(words, dtype)


def columns(layout: Layout, rows: np.ndarray) -> list[np.ndarray]:
    """The words of each leaf, (rows, *shape) uint32, for work on the host."""
    ends = np.cumsum([math.prod(leaf.shape) for leaf in layout.leaves])
    parts = np.split(rows, ends[:-1], axis=1) if layout.leaves else []
    shapes = [leaf.shape for leaf in layout.leaves]
    return [part.reshape(len(rows), *shape) for part, shape in zip(parts, shapes, strict=True)]
