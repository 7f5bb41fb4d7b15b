"""A policy's state in few arrays: rows of words for all that is small, the large ones as they are.

A call of a program costs time for every array that goes in and comes out, and a state may have
dozens of a few numbers each. Yet a row must not be long: a program whose arrays are all of at most
512 bytes is run by XLA on the thread of the caller, one that has a longer one partly on another
thread, and waking that takes longer than the program.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.agents.packed_tickets import WORD, columns, layout_of, pack, unpack
from driftbandits.agents.soundness import is_finite
from driftbandits.core import State

SHORT = 128  # words in an array that XLA takes for a small one

Parts = tuple[Array, ...]  # the rows of words, then the large arrays
Item = TypeVar("Item")


class StateLayout:
    """Where each array of a state is among its parts."""

    def __init__(self, blank: State, new_by_act: Sequence[bool] = ()) -> None:
        """Lays out a state like `blank`; arrays that deciding changes share their rows."""
        self.blank = blank  # shapes and types of a state
        leaves, self._structure = jax.tree.flatten(blank)
        self.nbytes = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
        changes = new_by_act or [False] * len(leaves)
        small = [place for place, leaf in enumerate(leaves) if leaf.size <= SHORT]
        self._small = sorted(small, key=lambda place: changes[place])
        self._large = [place for place, leaf in enumerate(leaves) if leaf.size > SHORT]
        self.has_large = bool(self._large)
        stay = sum(not changes[place] for place in small)
        sizes = [leaves[place].size for place in self._small]
        self._ends = ends_of_rows(sizes[:stay])
        self._ends += [stay + end for end in ends_of_rows(sizes[stay:])]
        groups = self._grouped(self._split(leaves)[0])
        self._rows = [layout_of(group) for group in groups]
        assert not any(key for row in self._rows for key in row.keys), "a state with a random key"
        self._are_floats = [are_floats(group) for group in groups]

    def pack(self, state: State) -> Parts:
        small, large = self._split(jax.tree.leaves(state))
        return *map(pack, self._grouped(small)), *large

    def unpack(self, parts: Parts) -> State:
        rows, large = self._rows_and_large(parts)
        pairs = zip(self._rows, rows, strict=True)
        return self._joined([leaf for layout, row in pairs for leaf in unpack(layout, row)], large)

    def on_host(self, parts: Parts) -> State:
        """`unpack` without a program."""
        rows, large = self._rows_and_large([np.array(part) for part in parts])
        small = []
        for layout, row in zip(self._rows, rows, strict=True):
            words = zip(columns(layout, row[None]), layout.leaves, strict=True)
            small += [as_numbers(array[0], leaf.dtype) for array, leaf in words]
        return self._joined(small, large)

    def from_host(self, state: State) -> tuple[np.ndarray, ...]:
        """`pack` without a program, of which JAX would keep one for every shape."""
        small, large = self._split([np.asarray(leaf) for leaf in jax.tree.leaves(state)])
        rows = (np.concatenate(list(map(to_words, group))) for group in self._grouped(small))
        return *rows, *large

    def places(self, are_new: Sequence[bool]) -> list[int]:
        """The places of the parts that have one of these arrays."""
        small, large = self._split(are_new)
        found = [*map(any, self._grouped(small)), *large]
        return [place for place, is_new in enumerate(found) if is_new]

    def is_finite(self, parts: Parts) -> Array:
        """Whether all numbers are finite, checked row by row, which is quicker than one by one."""
        rows, large = self._rows_and_large(parts)
        found = is_finite(large)
        for row, are_float in zip(rows, self._are_floats, strict=True):
            numbers = jax.lax.bitcast_convert_type(row, jnp.float32)
            found &= (jnp.isfinite(numbers) | ~are_float).all()
        return found

    def _rows_and_large(self, parts: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return parts[: len(self._ends)], parts[len(self._ends) :]

    def _grouped(self, small: Sequence[Item]) -> list[Sequence[Item]]:
        """Groups small arrays by row."""
        return [
            small[first:last] for first, last in zip([0, *self._ends], self._ends, strict=False)
        ]

    def _split(self, leaves: Sequence[Item]) -> tuple[list[Item], list[Item]]:
        """Splits arrays into small and large ones."""
        return [leaves[place] for place in self._small], [leaves[place] for place in self._large]

    def _joined(self, small: Sequence[Any], large: Sequence[Any]) -> State:
        both = zip([*self._small, *self._large], [*small, *large], strict=True)
        found = dict(both)
        return jax.tree.unflatten(self._structure, [found[place] for place in sorted(found)])


def ends_of_rows(sizes: list[int]) -> list[int]:
    """Which of the small arrays ends each row."""
    ends, words = [], 0
    for place, size in enumerate(sizes):
        if words + size > SHORT:
            ends.append(place)
            words = 0
        words += size
    return [*ends, len(sizes)] if sizes else []


def are_floats(leaves: Sequence[Any]) -> np.ndarray:
    """Which words of a row are floats."""
    return np.concatenate([np.full(leaf.size, leaf.dtype == np.float32) for leaf in leaves])


def to_words(numbers: np.ndarray) -> np.ndarray:
    words = numbers.astype(WORD) if numbers.dtype.kind == "b" else numbers.copy().view(WORD)
    return words.ravel()


def as_numbers(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return words.astype(bool) if dtype.kind == "b" else words.copy().view(dtype)


def with_new(parts: Parts, places: list[int], new: Parts) -> Parts:
    """Joins the unchanged parts of a state with the new ones of a program, which go to `places`."""
    if not new:
        return parts
    found = list(parts)
    for place, part in zip(places, new, strict=True):
        found[place] = part
    return tuple(found)


def only_new(parts: Parts, places: list[int]) -> Parts:
    return tuple(parts[place] for place in places)
