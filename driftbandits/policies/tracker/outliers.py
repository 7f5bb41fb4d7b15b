"""Outliers: values too far out to be believed, and how far they count.

A scale is known once ENOUGH values have been seen. Until then every value counts in full. Then the
largest of them show whether one was a gross outlier; if so, its effect is undone. From then on a
value counts as at most FAR scales from the centre, and the scale learns from the clipped value: one
outlier changes it by a bounded factor, many change it fully.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

ENOUGH = 16  # values for a scale
FAR = 30.0  # scales from the centre; values beyond are clipped to this
GROSS = 300.0  # times the third-largest of the first values: a gross outlier
LARGEST = 1e12  # of all rewards and contexts, so that float32 has room for their squares
LONGEST = 10_000.0  # values that a scale remembers
ALERT = 1_000.0  # rewards after an outlier in which another one is believed


def within_float32(x: Array) -> Array:
    return jnp.clip(x, -LARGEST, LARGEST)


class FirstSizes(NamedTuple):
    """The largest of the first values; zeros do not count, as they say nothing about a scale."""

    number: Array  # (...) int32, up to ENOUGH
    largest: Array  # (3, ...) float32, the largest first


def no_sizes(shape: tuple[int, ...]) -> FirstSizes:
    return FirstSizes(jnp.zeros(shape, jnp.int32), jnp.zeros((3, *shape)))


def add_size(first: FirstSizes, size: Array) -> FirstSizes:
    counts = (size > 0) & ~settled(first)
    larger = jnp.concatenate([jnp.full_like(size, jnp.inf)[None], first.largest[:-1]])
    largest = jnp.maximum(first.largest, jnp.minimum(larger, size))
    return FirstSizes(first.number + counts, jnp.where(counts, largest, first.largest))


def settled(first: FirstSizes) -> Array:
    return first.number == ENOUGH


def gross(first: FirstSizes) -> Array:
    """Whether the largest one or two are on another scale than the others."""
    return first.largest[0] > GROSS * first.largest[2]


def held_back(x: Array, centre: Array, scale: Array, is_settled: Array) -> Array:
    """At most FAR scales from the centre, once the scale is settled."""
    reach = jnp.where(is_settled, FAR * scale, jnp.inf)
    return jnp.clip(x, centre - reach, centre + reach)


def one_more(number: Array) -> Array:
    """The number of values behind a scale, with one more."""
    return jnp.minimum(number + 1, LONGEST)


def kept(number: Array) -> Array:
    """The share of a sum of so many values that stays when the next one comes."""
    return jnp.where(number < LONGEST, 1.0, 1 - 1 / LONGEST)
