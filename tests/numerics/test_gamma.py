"""The sampler behind Thompson sampling against the distributions that it claims."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from driftbandits.numerics import gamma, random_keys
from driftbandits.numerics.bernoulli_thompson import sample_log_odds

DRAWS = 400_000
SHAPES = [1.0, 1.003, 1.2, 2.0, 5.0, 40.0, 1e3, 9876.5, 1e5, 1e7]


@jax.jit
def samples(seed, shape):
    """Log-gamma variates of many runs with eight arms each."""
    own = jax.random.split(random_keys.key(seed), DRAWS // 8)
    return jax.vmap(gamma.sample_log_gamma, (0, None))(own, jnp.full(8, shape)).ravel()


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_distribution(shape):
    found = stats.gamma.cdf(np.exp(np.asarray(samples(5, shape), float)), shape)
    assert stats.kstest(found, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_moments(shape):
    logs = np.asarray(samples(6, shape), float)
    values = np.exp(logs - np.log(shape))
    error = 4.5 / np.sqrt(DRAWS * shape)
    assert abs(values.mean() - 1) < error + 2e-6  # float32 holds the logarithm to 1e-6
    fourth = 3 + 6 / shape
    assert abs(values.var() * shape - 1) < 4.5 * np.sqrt((fourth - 1) / DRAWS) + 2e-3


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1),
        (1, 30),
        (4, 2),
        (300, 700),
        (20_000, 10_000),
        (1.002, 1.4),  # counts that a discount has broken
        (1.3, 987.6),
    ],
)
def test_log_odds_are_those_of_a_beta(a, b):
    own, arms = jax.random.split(random_keys.key(7), DRAWS // 8), jnp.ones(4)
    odds = jax.jit(jax.vmap(lambda key: sample_log_odds(key, a * arms, b * arms)))(own).ravel()
    odds = np.asarray(odds, float)
    found = stats.beta.cdf(1 / (1 + np.exp(-odds)), a, b)
    assert stats.kstest(found, "uniform").pvalue > 1e-4


def test_few_proposals_are_refused():
    for shape, most in ((1.0, 0.055), (2.0, 0.03), (10.0, 0.004)):
        proposals = gamma.propose(random_keys.key(8), jnp.full(DRAWS, shape))
        assert np.isnan(proposals).mean() < most


def test_every_run_of_a_block_gets_what_it_would_get_alone():
    own = jax.random.split(random_keys.key(9), 50)
    shapes = 1 + jnp.arange(50 * 7.0).reshape(50, 7) % 5
    together = jax.jit(jax.vmap(gamma.sample_log_gamma))(own, shapes)
    alone = jax.jit(gamma.sample_log_gamma)
    for i in range(50):
        np.testing.assert_array_equal(together[i], alone(own[i], shapes[i]))


def test_a_shape_that_is_not_a_number_ends():
    assert np.isnan(
        jax.jit(gamma.sample_log_gamma)(random_keys.key(0), jnp.array([2.0, np.nan]))[1]
    )


def test_remainder_of_the_logarithm():
    y = np.concatenate([np.linspace(-0.99, 3, 400), np.geomspace(1e-4, 0.2, 50)])
    exact = np.log1p(y) - y + y**2 / 2 - y**3 / 3
    near = np.abs(y) < 0.02  # where float64 loses the digits of the difference
    exact[near] = -(y[near] ** 4) / 4 + y[near] ** 5 / 5 - y[near] ** 6 / 6
    found = np.asarray(gamma.log1p_beyond_cubic(jnp.asarray(y, jnp.float32)), float)
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=1e-10)
    assert (found <= 0).all()
