"""The energy term: its identity, why Theorem 1 of Rotman & Wolf (2023) fails, and what holds."""

import jax
import numpy as np
import pytest
from scipy.special import lambertw, softmax

from driftbandits.numerics.energy import (
    claimed_ratio_bound,
    conditional_ratio_bound,
    energy_term,
    largest_logit_bound,
    mean_energy,
    zero_energy_logits,
)

NUMBERS_OF_ARMS = [2, 3, 10, 100]
ROUNDING = 2e-5  # of single precision, in logits of up to 30

mean_energies = jax.jit(jax.vmap(mean_energy))
energy_terms = jax.jit(jax.vmap(energy_term))
energy_and_gradient = jax.jit(jax.value_and_grad(energy_term))
zero_logits = jax.jit(jax.vmap(zero_energy_logits))


def all_arms(logits):
    return np.ones(np.shape(logits), bool)


def random_logits(num_arms):
    """Of several widths, and shifted, since L_EC depends on the shift."""
    rng = np.random.default_rng(num_arms)
    widths, shifts = rng.choice([0.1, 1.0, 4.0], (1000, 1)), rng.normal(0, 2, (1000, 1))
    return (rng.normal(size=(1000, num_arms)) * widths + shifts).astype(np.float32)


def random_probabilities(num_arms):
    """From nearly one-hot to nearly uniform, all with full support."""
    rng = np.random.default_rng(num_arms)
    probabilities = [rng.dirichlet(np.full(num_arms, c), 200) for c in (0.03, 0.3, 1, 10, 100)]
    probabilities = np.concatenate(probabilities) + 1e-12
    return (probabilities / probabilities.sum(axis=1, keepdims=True)).astype(np.float32)


def ratio(probabilities):
    return probabilities.max(axis=-1) / probabilities.min(axis=-1)


def sharp_logits(num_arms, low):
    """All arms but one at `low`, and the first where the mean energy is zero."""
    high = lambertw(-(num_arms - 1) * low * np.exp(low)).real
    return np.array([high] + [low] * (num_arms - 1))


@pytest.mark.parametrize("num_arms", NUMBERS_OF_ARMS)
def test_energy_term_is_log_partition_less_entropy_squared(num_arms):
    logits = random_logits(num_arms)
    exact = logits.astype(np.float64)
    log_partition = np.log(np.exp(exact).sum(axis=1))
    log_probabilities = exact - log_partition[:, None]
    entropy = -(np.exp(log_probabilities) * log_probabilities).sum(axis=1)
    ours = energy_terms(logits, all_arms(logits))
    np.testing.assert_allclose(ours, (log_partition - entropy) ** 2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("num_arms", "bound"), [(2, 3.59), (3, 4.32), (5, 5.57), (10, 8.17), (20, 12.5), (100, 37.7)]
)
def test_claimed_bound_grows_with_the_arms(num_arms, bound):
    digits = 1 if bound > 10 else 2
    assert round(claimed_ratio_bound(num_arms), digits) == bound


@pytest.mark.parametrize(
    ("num_arms", "largest", "probability", "high_ratio", "claimed"),
    [
        (2, 0.000453793, 1 - 4.53793e-5, 22036.5, 3.5911),
        (5, 0.0018127, 0.999819, 22066, 5.5724),
        (10, 0.0040694, 0.999593, 22116, 8.1744),
    ],
)
def test_zero_energy_does_not_bound_the_ratio(num_arms, largest, probability, high_ratio, claimed):
    logits = sharp_logits(num_arms, low=-10.0)
    probabilities = softmax(logits)
    ours = zero_logits(probabilities[None])[0]
    np.testing.assert_allclose(ours, logits, atol=ROUNDING)
    np.testing.assert_allclose(softmax(ours), probabilities, rtol=1e-4)
    assert energy_and_gradient(ours, all_arms(ours))[0] < 1e-10
    assert logits[0] == pytest.approx(largest, rel=1e-4)
    assert probabilities[0] == pytest.approx(probability, abs=1e-6)
    assert ratio(probabilities) == pytest.approx(high_ratio, rel=1e-4)
    assert claimed_ratio_bound(num_arms) == pytest.approx(claimed, abs=1e-4)


@pytest.mark.parametrize(("num_arms", "share"), [(2, 0.73), (5, 0.989), (10, 1.0)])
def test_random_probabilities_break_the_claimed_bound(num_arms, share):
    probabilities = np.random.default_rng(0).dirichlet(np.full(num_arms, 0.3), 20_000)
    with np.errstate(divide="ignore"):  # a probability may underflow
        broken = ratio(probabilities) > claimed_ratio_bound(num_arms)
    assert broken.mean() == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("num_arms", NUMBERS_OF_ARMS)
def test_zero_energy_bounds_the_largest_logit(num_arms):
    probabilities = random_probabilities(num_arms)
    logits = np.asarray(zero_logits(probabilities))
    np.testing.assert_allclose(softmax(logits, axis=1), probabilities, rtol=1e-4)
    np.testing.assert_allclose(mean_energies(logits, all_arms(logits)), 0, atol=ROUNDING)
    assert logits.max(axis=1).min() >= -ROUNDING
    assert logits.max() <= largest_logit_bound(num_arms) + ROUNDING
    assert ratio(probabilities).max() > 100 * claimed_ratio_bound(num_arms)


@pytest.mark.parametrize("num_arms", NUMBERS_OF_ARMS)
def test_bounds_are_attained_where_the_other_logits_are_minus_one(num_arms):
    logits = sharp_logits(num_arms, low=-1.0)
    assert softmax(logits) @ logits == pytest.approx(0, abs=1e-12)
    assert largest_logit_bound(num_arms) == pytest.approx(logits[0], rel=1e-12)
    assert claimed_ratio_bound(num_arms) == pytest.approx(np.exp(logits[0] + 1), rel=1e-12)
    for other in (-0.9, -1.1):
        assert sharp_logits(num_arms, low=other)[0] < logits[0]


@pytest.mark.parametrize("num_arms", NUMBERS_OF_ARMS)
def test_mean_energy_loosens_the_bound_by_its_size(num_arms):
    logits = random_logits(num_arms)
    energies = np.asarray(mean_energies(logits, all_arms(logits)))
    bounds = [largest_logit_bound(num_arms, float(energy)) for energy in energies]
    assert np.all(logits.max(axis=1) <= np.array(bounds) + ROUNDING)
    assert (energies < -1).any()
    assert (energies > 1).any()
    # a common shift of the tight logits attains it
    tight = sharp_logits(num_arms, low=-1.0) + 0.7
    assert softmax(tight) @ tight == pytest.approx(0.7)
    assert largest_logit_bound(num_arms, 0.7) == pytest.approx(tight[0])
    assert largest_logit_bound(num_arms, -0.7) == largest_logit_bound(num_arms, 0.7)


@pytest.mark.parametrize("num_arms", NUMBERS_OF_ARMS)
def test_logits_bounded_below_bound_the_ratio(num_arms):
    probabilities = random_probabilities(num_arms)
    logits = np.asarray(zero_logits(probabilities), np.float64)
    bounds = [conditional_ratio_bound(num_arms, low) for low in logits.min(axis=1)]
    assert np.all(ratio(probabilities) <= np.array(bounds) * (1 + ROUNDING))
    largest = lambertw((num_arms - 1) / np.e).real
    assert conditional_ratio_bound(num_arms, -3.0) == pytest.approx(np.exp(largest + 3))


LOGITS = np.array([0.5, -2.0, 1.5, 0.0, 3.0], np.float32)


@pytest.mark.parametrize("unavailable", [0.0, 50.0, -50.0, 1e30, -1e30])
def test_unavailable_arms_do_not_count(unavailable):
    available = np.array([True, False, True, True, False])
    logits = np.where(available, LOGITS, np.float32(unavailable))
    kept = LOGITS[available]
    value, gradient = energy_and_gradient(logits, available)
    expected, expected_gradient = energy_and_gradient(kept, all_arms(kept))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(gradient)[available], expected_gradient, rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(gradient)[~available], 0)


def test_gradient_of_the_energy_term():
    available = np.array([True, True, True, True, False])
    probabilities = np.append(softmax(LOGITS[:4]), 0)
    mean = probabilities @ LOGITS
    expected = 2 * mean * probabilities * (1 + LOGITS - mean)
    gradient = energy_and_gradient(LOGITS, available)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradient.sum(), 2 * mean, rtol=1e-5)


def test_one_available_arm_has_its_logit_as_energy():
    available = np.arange(5) == 1
    value, gradient = energy_and_gradient(LOGITS, available)
    np.testing.assert_allclose(value, 4.0, rtol=1e-6)
    np.testing.assert_allclose(gradient, np.where(available, -4.0, 0.0), rtol=1e-6)


def test_gradient_vanishes_at_zero_energy():
    """So that there the term exerts no force on the probabilities, however sharp."""
    logits = zero_logits(np.array([[0.98, 0.01, 0.01]]))[0]
    gradient = energy_and_gradient(logits, all_arms(logits))[1]
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
