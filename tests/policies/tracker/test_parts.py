"""The parts of the tracker, each by itself."""

import jax
import numpy as np
import pytest
from scipy.stats import norm, t

from driftbandits.policies.tracker import experts, gate, kalman, seen_rewards, streaks
from driftbandits.policies.tracker.fourier import random_waves, wave_features
from driftbandits.policies.tracker.inverse_gaps import inverse_gap_probabilities
from tests.policies.playing import KEY
from tests.policies.transcriptions.tracker import bucket

# Each is compiled as one program, which takes less time than each of its operations by itself.
new_bank = jax.jit(kalman.start, static_argnums=1)
predict = jax.jit(kalman.predict)
predict_arm = jax.jit(kalman.predict_arm)
correct = jax.jit(kalman.correct)
pass_time = jax.jit(kalman.pass_time)
mix = jax.jit(kalman.mix)
update_weights = jax.jit(experts.update_weights)
update_gate = jax.jit(gate.update_gate)
chance_of_second = jax.jit(gate.chance_of_second)
add_reward = jax.jit(seen_rewards.add_reward)
current_effect = jax.jit(streaks.current_effect, static_argnums=1)
inverse_gaps = jax.jit(inverse_gap_probabilities)


def world(drifts, prior):
    return kalman.World(*(np.float32(x) for x in (drifts, np.ones(len(prior)), prior)))


@jax.jit
def updated(bank, arm, features, reward):
    mean, variance, along = kalman.predict_arm(bank, arm, features)
    return kalman.correct(bank, arm, reward - mean, along, 1 + variance)


def test_one_arm_is_predicted_as_among_all():
    rng = np.random.default_rng(1)
    bank = new_bank(world([0.0, 0.1], [2.0, 0.5, 1.5]), 3)
    for arm in (0, 1, 1, 2):
        bank = updated(bank, arm, np.float32(rng.standard_normal(3)), 1.0)
    features = np.float32(rng.standard_normal(3))
    means, variances = map(np.asarray, predict(bank, features))
    for arm in range(3):
        one = predict_arm(bank, arm, features)
        np.testing.assert_allclose(one[0], means[:, arm], rtol=1e-5)
        np.testing.assert_allclose(one[1], variances[:, arm], rtol=1e-5)


def test_a_filter_that_stands_still_is_regression():
    rng = np.random.default_rng(1)
    prior = np.array([2.0, 0.5, 1.5])
    still = world([0.0], prior)
    bank = new_bank(still, 2)
    z = rng.standard_normal((50, 3)).astype(np.float32)
    y = (z @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(50)).astype(np.float32)
    for features, reward in zip(z, y, strict=True):
        bank = pass_time(updated(bank, 1, features, reward), still, 1)
    covariance = np.linalg.inv(np.diag(1 / prior) + z.T @ z)
    bank = jax.tree.map(np.asarray, bank)
    np.testing.assert_allclose(bank.covariance[0, 1], covariance, atol=1e-5)
    np.testing.assert_allclose(bank.mean[0, 1], covariance @ z.T @ y, atol=1e-4)
    np.testing.assert_array_equal(bank.mean[0, 0], 0)
    np.testing.assert_array_equal(bank.covariance[0, 0], np.diag(prior))


@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_doubt_grows_to_the_prior(steps):
    fast = world([0.0, 0.1], [1.5])
    bank = updated(new_bank(fast, 1), 0, np.ones(1, np.float32), 1.0)
    np.testing.assert_allclose(np.ravel(bank.covariance), [1.5 / 2.5] * 2, rtol=1e-6)
    once = np.ravel(pass_time(bank, fast, steps).covariance)[1]
    assert once == pytest.approx(min(0.6 + 0.1 * steps * 0.6, 1.5), rel=1e-5)
    for _ in range(300):
        bank = pass_time(bank, fast, steps)
    np.testing.assert_allclose(np.ravel(bank.covariance), [0.6, 1.5], rtol=1e-4)


def test_what_is_not_known_any_more_is_not_learnt_from():
    bank = new_bank(world([0.1], [1.5]), 1)
    one, nothing = np.ones(1, np.float32), np.zeros((1, 1), np.float32)
    after = correct(bank, 0, one, nothing, one)
    np.testing.assert_array_equal(after.mean, bank.mean)
    np.testing.assert_array_equal(after.covariance, bank.covariance)


def test_mixing_keeps_the_mean_and_variance_of_the_bank():
    """Where every expert hands over as much as it takes."""
    rng = np.random.default_rng(2)
    bank = kalman.Bank(
        np.float32(rng.standard_normal((3, 2, 1))), np.float32(rng.random((3, 2, 1, 1)))
    )
    weights, noise = np.float32([0.5, 0.3, 0.2]), np.float32([2.0, 2.0, 2.0])

    def moments(bank):
        mean = weights @ bank.mean[:, :, 0]
        apart = (bank.mean[:, :, 0] - mean) ** 2
        return mean, weights @ (noise[:, None] * bank.covariance[:, :, 0, 0] + apart)

    mixed = jax.tree.map(np.asarray, mix(bank, weights, noise, np.full(3, 0.3, np.float32)))
    np.testing.assert_allclose(np.array(moments(mixed)), np.array(moments(bank)), rtol=1e-5)
    assert np.ptp(mixed.mean, axis=0).max() < np.ptp(bank.mean, axis=0).max()
    whole = mix(bank, weights, noise, np.ones(3, np.float32))
    assert np.ptp(whole.mean, axis=0).max() < 1e-6


def test_student():
    x = np.linspace(-5, 5, 11)
    ours = np.asarray(jax.jit(experts.log_student)(np.float32(x), 2.0, 7.0))
    density = t.logpdf(x, 7, 0, np.sqrt(2))
    np.testing.assert_allclose(ours - ours[5], density - density[5], atol=1e-5)


def test_weights_go_to_the_expert_that_predicts():
    belief = np.float32([0.75, 0.25])
    state = experts.start(belief)
    errors, variance = np.float32([3.0, 0.1]), np.float32([0.1, 0.1])
    for _ in range(20):
        weights = update_weights(state, errors, variance, doubt=2.0, share=0.01, belief=belief)
        state = state._replace(weights=weights)
    np.testing.assert_allclose(state.weights, [0.0075, 0.9925], atol=1e-3)


def test_the_gate():
    """Thompson sampling between two normal means, by scipy."""
    rng = np.random.default_rng(3)
    state = gate.new_gate()
    assert chance_of_second(state, 4.0) == pytest.approx(0.5)
    paid = ([], [])
    for _ in range(60):
        who = int(rng.random() < 0.6)
        reward = rng.normal(0.2 * who)
        state = update_gate(state, np.arange(2) == who, reward, True)
        paid[who].append(reward)
    n = np.array([len(x) for x in paid])
    squares = sum(np.var(x) * len(x) for x in paid)
    deviation = np.sqrt((squares + 2 * 4.0) / (n.sum() + 2) * (1 / (n + 1)).sum())
    chance = norm.cdf((np.mean(paid[1]) - np.mean(paid[0])) / deviation)
    assert chance_of_second(state, 4.0) == pytest.approx(chance, abs=0.01)


def test_the_gate_counts_only_steps_that_tell():
    state = update_gate(gate.new_gate(), np.array([True, False]), 3.0, True)
    assert state.mean.tolist() == [3, 0]
    for follows, judges in (([True, True], True), ([False, False], True), ([True, False], False)):
        same = update_gate(state, np.array(follows), 9.0, judges)
        assert all(map(np.array_equal, same, state))
    alone = gate.update_gate(state, np.array([True]), 9.0, True)
    assert alone is state


def test_inverse_gaps():
    scores, available = np.float32([1.0, 3.0, 2.5, 9.0]), np.array([True, True, True, False])
    probabilities = np.asarray(inverse_gaps(scores, 0.5, available))
    others = [1 / (3 * (1 + 4**3)), 1 / (3 * (1 + 1))]
    np.testing.assert_allclose(probabilities, [others[0], 1 - sum(others), others[1], 0], rtol=1e-5)


def test_inverse_gaps_of_ties():
    probabilities = inverse_gaps(np.float32([1.0, 1.0, 0.0]), 1.0, np.ones(3, bool))
    np.testing.assert_allclose(probabilities, [5 / 12, 5 / 12, 1 / 6], rtol=1e-5)
    everything = inverse_gaps(np.ones(3, np.float32), 0.0, np.ones(3, bool))
    np.testing.assert_allclose(everything, 1 / 3)
    without = inverse_gaps(np.float32([1.0, 2.0]), 0.0, np.ones(2, bool))
    np.testing.assert_allclose(without, [0, 1])


def test_waves_are_a_gaussian_kernel():
    rng = np.random.default_rng(4)
    length, x = 1.5, rng.standard_normal((12, 3)).astype(np.float32)
    waves = random_waves(KEY, 20_000, 3, length)
    features = jax.jit(jax.vmap(wave_features, (None, 0)))(waves, x)
    features = np.asarray(features, float)
    squared = ((x[:, None] - x) ** 2).sum(axis=-1)
    kernel = np.exp(-squared / (2 * length**2))
    np.testing.assert_allclose(features @ features.T, kernel, atol=0.03)
    assert random_waves(KEY, 0, 3, length).phases.size == 0


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_seen_rewards(shift):
    rewards = shift + np.round(np.random.default_rng(5).standard_normal(300) * 64) / 64
    seen = seen_rewards.no_rewards()
    for reward in rewards:
        seen, taken = add_reward(seen, np.float32(reward))
        assert (taken.believed, taken.restarts) == (True, False)
    assert taken.relative == rewards[-1] - rewards[0]
    assert seen.mean == pytest.approx(rewards.mean() - rewards[0], abs=1e-5)
    assert seen_rewards.reward_variance(seen) == pytest.approx(rewards.var(), rel=1e-4)


def test_buckets_of_streaks():
    """All below 24 have one of their own."""
    for length in (*range(60), 97, 98, 1716, 1717, 10**6):
        known = streaks.no_streaks()._replace(length=np.int32(length))
        assert current_effect(known, 0.01).bucket == bucket(length)


def test_an_effect_makes_the_next_one_likelier():
    unknown = streaks.no_streaks()._replace(length=np.int32(6))
    fifth = np.float32(np.arange(streaks.BUCKETS) == 5)
    known = unknown._replace(evidence=20 * fifth, counts=9 * fifth, excess=-20 * fifth)
    before, after = (current_effect(state, 0.01) for state in (unknown, known))
    assert before.chance == pytest.approx(0.01 + 0.49 * 0.01, rel=1e-4)
    assert (after.chance, after.size) == (pytest.approx(0.5, abs=1e-3), pytest.approx(-2, abs=1e-3))
    none = current_effect(known._replace(length=np.int32(0)), 0.01)
    assert none.chance == 0
