"""More arms for a policy that has learned already: what it knows stays, new arms are as at first.

The states of one policy for few and for many arms differ in the lengths of some axes. What is known
goes to the front of the longer axis, and the rest is as a fresh state has it. Where arms stand
between other things (a network's input is context, last arm, reward), what follows them stays last.
"""

import math

import jax
import numpy as np

from driftbandits.agents.packed_tickets import WORD, Layout, columns
from driftbandits.core import PyTree


def grown(known: PyTree, fresh: PyTree, arms: int, more: int) -> PyTree:
    """Puts `known`, with so many arms, into the shapes of `fresh`, which has `more` arms."""
    return jax.tree.map(lambda old, new: placed(np.asarray(old), new, arms, more), known, fresh)


def placed(old: np.ndarray, new: np.ndarray, arms: int, more: int) -> np.ndarray:
    if old.shape == np.shape(new):
        return old
    result = np.array(new)
    places = [
        positions(*lengths, arms, more) for lengths in zip(old.shape, result.shape, strict=True)
    ]
    result[np.ix_(*places)] = old[tuple(slice(place.size) for place in places)]
    return result


def positions(old: int, new: int, arms: int, more: int) -> np.ndarray:
    """Where the entries of an axis go."""
    if new - old == more and old > arms:
        return np.append(np.arange(old - 1), new - 1)
    return np.arange(min(old, new))


def rows_grown(rows: np.ndarray, before: Layout, after: Layout, arms: int, more: int) -> np.ndarray:
    """Reshapes tickets: new arms are zero, or were not available."""
    blank = columns(after, np.zeros((len(rows), after.width), WORD))
    pairs = zip(columns(before, rows), blank, strict=True)
    shaped = [placed(old, new, arms, more) for old, new in pairs]
    parts = [part.reshape(len(rows), math.prod(part.shape[1:])) for part in shaped]  # also no rows
    return np.concatenate(parts, axis=1) if parts else rows
