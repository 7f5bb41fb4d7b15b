"""A policy's state in few arrays: one row of words for all that is small, the large ones as is.

A call of a program costs time for every array that goes in and comes out, and a state may have
dozens of a few numbers each.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.agents.packed_tickets import WORD, columns, layout_of, pack, unpack
from driftbandits.agents.soundness import is_finite
from driftbandits.core import State

SMALL = 256  # numbers in an array that goes into the row

Parts = tuple[Array, ...]  # the row of words, then the large arrays


class StateLayout:
    """Where each array of a state is among its parts."""

    def __init__(self, blank: State) -> None:
        self.blank = blank  # shapes and types of a state
        leaves, self._structure = jax.tree.flatten(blank)
        self._is_small = [leaf.size <= SMALL for leaf in leaves]
        small, _ = self._split(leaves)
        self._row = layout_of(small)
        assert not any(self._row.keys), "a state with a random key"
        masks = [np.full(leaf.size, leaf.dtype == np.float32) for leaf in small]
        self._is_float = np.concatenate([np.zeros(0, bool), *masks])

    def pack(self, state: State) -> Parts:
        small, large = self._split(jax.tree.leaves(state))
        return pack(small), *large

    def unpack(self, parts: Parts) -> State:
        return self._joined(unpack(self._row, parts[0]), parts[1:])

    def on_host(self, parts: Parts) -> State:
        """`unpack` without a program."""
        row, *large = map(np.array, parts)
        words = columns(self._row, row[None])
        pairs = zip(words, self._row.leaves, strict=True)
        small = [as_numbers(array[0], leaf.dtype) for array, leaf in pairs]
        return self._joined(small, large)

    def from_host(self, state: State) -> tuple[np.ndarray, ...]:
        """`pack` without a program, of which JAX would keep one for every shape."""
        small, large = self._split([np.asarray(leaf) for leaf in jax.tree.leaves(state)])
        return np.concatenate([np.zeros(0, WORD), *map(to_words, small)]), *large

    def are_new(self, before: State, after: State) -> list[bool]:
        """Of each part, whether it has an array that was not there before."""
        pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        small, large = self._split([one is not other for one, other in pairs])
        return [any(small), *large]

    def is_finite(self, parts: Parts) -> Array:
        """Whether all numbers are: in the row at once, which takes less time than one by one."""
        row = jax.lax.bitcast_convert_type(parts[0], jnp.float32)
        return (jnp.isfinite(row) | ~self._is_float).all() & is_finite(parts[1:])

    def _split(self, leaves: list[Any]) -> tuple[list[Any], list[Any]]:
        """The small ones, and the large ones."""
        split: tuple[list[Any], list[Any]] = [], []
        for leaf, is_small in zip(leaves, self._is_small, strict=True):
            split[not is_small].append(leaf)
        return split

    def _joined(self, small: list[Any], large: Any) -> State:
        found = {True: iter(small), False: iter(large)}
        leaves = [next(found[is_small]) for is_small in self._is_small]
        return jax.tree.unflatten(self._structure, leaves)


def to_words(numbers: np.ndarray) -> np.ndarray:
    words = numbers.astype(WORD) if numbers.dtype.kind == "b" else numbers.copy().view(WORD)
    return words.ravel()


def as_numbers(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return words.astype(bool) if dtype.kind == "b" else words.copy().view(dtype)


def with_new(parts: Parts, are_new: list[bool], new: Parts) -> Parts:
    """All parts of a state, of which a program gave the new ones."""
    rest = iter(new)
    return tuple(
        next(rest) if is_new else part for part, is_new in zip(parts, are_new, strict=True)
    )


def only_new(parts: Parts, are_new: list[bool]) -> Parts:
    return tuple(part for part, is_new in zip(parts, are_new, strict=True) if is_new)
