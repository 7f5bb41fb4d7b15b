"""Our keys give JAX's own bits."""

import jax
import numpy as np
import pytest

from driftbandits.numerics import random_keys

DRAWS = {
    "words": jax.random.key_data,
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 2))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 4_000_000_000)),
    "scalar": jax.random.uniform,
    "uniform": lambda key: jax.random.uniform(key, (5, 7)),
    "normal": lambda key: jax.random.normal(key, (11,)),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (100,)),
    "randint": lambda key: jax.random.randint(key, (9,), 0, 1000),
    "bytes": lambda key: jax.random.bits(key, (9,), "uint8"),
    "halves": lambda key: jax.random.bits(key, (9,), "uint16"),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("seed", [0, 123, 2**31 + 5])
def test_bits_are_those_of_jax(draw, seed):
    np.testing.assert_array_equal(draw(random_keys.key(seed)), draw(jax.random.key(seed)))


def test_bits_are_those_of_jax_under_vmap_and_jit():
    def draw(key):
        return jax.random.uniform(jax.random.fold_in(key, 3), (10,))

    ours, theirs = (jax.random.split(make(7), 6) for make in (random_keys.key, jax.random.key))
    np.testing.assert_array_equal(jax.jit(jax.vmap(draw))(ours), jax.vmap(draw)(theirs))


def test_two_words_are_independent_and_uniform():
    first, second = (
        np.asarray(word) / 2**32 for word in random_keys.two_words(random_keys.key(1), (200_000,))
    )
    for values in (first, second):
        counts = np.histogram(values, 50, (0, 1))[0]
        assert ((counts - 4000) ** 2 / 4000).sum() < 90  # chi-square with 49 degrees: p > 0.0003
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.009  # four standard errors
    np.testing.assert_array_equal(
        first * 2**32, np.asarray(random_keys.two_words(jax.random.key(1), (200_000,))[0], float)
    )


def test_computed_once_is_the_identity():
    value = random_keys.computed_once(lambda: jax.numpy.arange(5) * 2)
    np.testing.assert_array_equal(value, [0, 2, 4, 6, 8])
