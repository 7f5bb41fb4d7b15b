"""The tracker's twin by itself: what must hold whatever the policy does."""

import numpy as np
import pytest

from tests.policies.transcriptions.tracker import EDGES, NB, Tracker, bucket

NOTHING = np.zeros(0)


def played(twin, rewards, seed=0, contexts=None, masks=None):
    """The probabilities and arms of a twin that draws its arms itself."""
    rng = np.random.default_rng(seed)
    all_probabilities, arms = [], []
    for t, row in enumerate(rewards):
        context = NOTHING if contexts is None else contexts[t]
        probabilities = twin.act(context, None if masks is None else masks[t])
        arm = rng.choice(twin.K, p=probabilities)
        twin.learn(arm, row[arm])
        all_probabilities.append(probabilities)
        arms.append(arm)
    return np.array(all_probabilities), np.array(arms)


def noisy(means, seed=1, scale=0.5):
    return means + scale * np.random.default_rng(seed).standard_normal(np.shape(means))


def test_the_better_coin():
    """In most games: a first difference among equal rewards may pass for an effect of a streak."""
    rng = np.random.default_rng(0)
    for better in (0, 1):
        means, shares = np.where(np.arange(2) == better, 0.7, 0.3), []
        for seed in range(5):
            rewards = (rng.random((400, 2)) < means).astype(float)
            _, arms = played(Tracker(2, 0), rewards, seed)
            shares.append((arms[100:] == better).mean())
        assert np.median(shares) > 0.95


def test_buckets():
    buckets = [bucket(length) for length in range(3000)]
    assert buckets[:24] == list(range(24))
    assert [buckets[length] for length in (24, 31, 32, 41, 42, 55, 56)] == [
        24,
        24,
        25,
        25,
        26,
        26,
        27,
    ]
    assert sorted(set(buckets)) == list(range(NB))
    assert buckets == sorted(buckets)
    assert EDGES[:6] == [32, 42, 56, 74, 98, 130]


@pytest.mark.parametrize("dim", [0, 3])
def test_one_static_expert_is_bayesian_linear_regression(dim):
    """No arm twice in a row, so that no effect of a streak takes part."""
    rng = np.random.default_rng(2)
    num_arms, px, p0 = 3, 2.0, 0.7
    prior = np.diag([px] * dim + [p0])
    contexts = rng.standard_normal((60, dim)) * np.arange(1, dim + 1)
    twin = Tracker(num_arms, dim, q=(0,), share=0, px=px, p0=p0, pslab=1e-9)
    seen, rewards, starts = [[] for _ in range(num_arms)], [], {}
    arm = 0
    for t, x in enumerate(contexts):
        twin.act(x)
        arm = (arm + rng.integers(1, num_arms)) % num_arms
        reward = rng.normal(arm + x.sum(), 0.3)
        twin.learn(arm, reward)
        starts.setdefault(arm, np.mean(rewards or [reward]))
        rewards.append(reward)
        rms = np.sqrt((contexts[: t + 1] ** 2).mean(axis=0))
        seen[arm].append((np.append(x / rms, 1.0), reward))
    for arm, own in enumerate(seen):
        z, y = np.array([z for z, _ in own]), np.array([y for _, y in own])
        start = np.append(np.zeros(dim), starts[arm])
        covariance = np.linalg.inv(np.linalg.inv(prior) + z.T @ z)
        np.testing.assert_allclose(twin.P[0, arm], covariance, rtol=1e-9, atol=1e-12)
        mean = start + covariance @ z.T @ (y - z @ start)
        np.testing.assert_allclose(twin.m[0, arm], mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dim", [0, 2])
def test_probabilities_and_weights(dim):
    rng = np.random.default_rng(3)
    steps, num_arms = 200, 4
    contexts, rewards = rng.standard_normal((steps, dim)), noisy(np.tile(np.arange(4), (steps, 1)))
    masks = rng.random((steps, num_arms)) < 0.6
    masks[:150, 3] = False
    masks[~masks.any(axis=1), 0] = True
    twin = Tracker(num_arms, dim)
    probability_sums, unavailable = [], []
    for t in range(steps):
        probabilities = twin.act(contexts[t], masks[t])
        probability_sums.append(probabilities.sum())
        unavailable.append(probabilities[~masks[t]].sum())
        arm = rng.choice(num_arms, p=probabilities)
        twin.learn(arm, rewards[t, arm])
        assert twin.w.sum() == pytest.approx(1, abs=1e-12)
        assert (twin.w >= 0.999 * twin.share * twin.pi).all()
        assert np.linalg.eigvalsh(twin.P).min() > 0
        if t < 150:
            np.testing.assert_allclose(twin.m[:, 3, -1], np.mean(twin.rewards), rtol=1e-12)
            np.testing.assert_array_equal(twin.m[:, 3, :-1], 0)
            np.testing.assert_allclose(twin.P[:, 3], np.tile(np.diag(twin.own.prior), (5, 1, 1)))
    np.testing.assert_allclose(probability_sums, 1, rtol=1e-12)
    assert not np.any(unavailable)
    assert twin.pulls[3] >= twin.n0


def test_forced_pulls_share_alike():
    twin = Tracker(3, 0)
    np.testing.assert_allclose(twin.act(NOTHING), [1 / 3] * 3)
    twin.learn(1, 5.0)
    np.testing.assert_allclose(twin.act(NOTHING), [1 / 2, 0, 1 / 2])
    np.testing.assert_allclose(twin.act(NOTHING, [True, True, False]), [1, 0, 0])
    np.testing.assert_allclose(twin.act(NOTHING, [False, True, False]), [0, 1, 0])
    for arm in (0, 2, 0, 1):
        twin.act(NOTHING)
        twin.learn(arm, 5.0 + arm)
    assert twin.pulls.tolist() == [2, 2, 1]
    twin.act(NOTHING, [True, True, False])
    assert not twin.forced
    np.testing.assert_allclose(twin.act(NOTHING), [0, 0, 1])


def test_a_jump_is_weight_for_the_fast_experts():
    twin = Tracker(2, 0)
    played(twin, noisy(np.tile([0.0, 1.0], (400, 1))))
    before = twin.w.copy()
    for reward in noisy(np.full(8, 4.0), seed=5):
        twin.act(NOTHING)
        twin.learn(1, reward)
    assert before[0] > 0.4
    assert twin.w[-1] > 10 * before[-1]
    assert twin.w[0] < before[0]


def test_a_limit_on_streaks_is_found():
    """The fourth pull in a row and all after it pay nothing."""
    rng = np.random.default_rng(6)
    twin, lengths = Tracker(2, 0), []
    for _ in range(400):
        arm = rng.choice(2, p=twin.act(NOTHING))
        spent = arm == twin.last and twin.streak >= 3
        twin.learn(arm, (0.0 if spent else 1.0 - 0.3 * (arm == 0)) + 0.1 * rng.standard_normal())
        lengths.append(twin.streak)
    assert twin.logodds[3] > 5
    assert np.delete(twin.logodds, 3).max() < 0
    assert twin.ge[3] / twin.gn[3] < -0.5
    assert max(lengths[200:]) == 3


def test_the_coin_mixes_two_distributions():
    twin = Tracker(2, 0)
    for arm, reward in ((0, 0.0), (1, 0.9), (0, 0.1), (1, 1.1)):
        twin.act(NOTHING)
        twin.learn(arm, reward)
    assert (twin.last, twin.streak) == (1, 1)
    twin.logodds[1], twin.gn[1], twin.ge[1] = np.log(0.3 / 0.7), 4, -50.0
    np.testing.assert_allclose(twin.act(NOTHING), [0.3, 0.7])
    assert twin.index[1] > twin.index[0]
    np.testing.assert_allclose(twin.act(NOTHING, [False, True]), [0, 1])


def test_neither_scale_nor_origin_of_the_rewards_matters():
    rng = np.random.default_rng(7)
    contexts = rng.standard_normal((300, 2))
    rewards = noisy(contexts @ rng.standard_normal((2, 3)))
    plain, arms = played(Tracker(3, 2), rewards, contexts=contexts)
    scaled, same = played(Tracker(3, 2), 1000 + 50 * rewards, contexts=contexts * [1, 20])
    np.testing.assert_array_equal(arms, same)
    np.testing.assert_allclose(plain, scaled, atol=1e-5)


def test_an_expert_that_lives_on_its_share_starts_from_the_mixture():
    twin = Tracker(2, 1)
    rng = np.random.default_rng(8)
    played(twin, noisy(np.zeros((40, 2))), contexts=rng.standard_normal((40, 1)))
    twin.w = twin.share * twin.pi
    twin.w[0] += 1 - twin.share
    twin.own.m += rng.standard_normal(twin.m.shape)
    m, p = twin.m.copy(), twin.P.copy()
    mb = np.einsum("j,jki->ki", twin.w, m)
    second = np.einsum("j,jkil->kil", twin.w * twin.s2, p)
    second += np.einsum("j,jki,jkl->kil", twin.w, m - mb, m - mb)
    twin.own.mix(twin.w, twin.s2, twin.share * twin.pi / twin.w)
    for j in range(1, 5):
        np.testing.assert_allclose(twin.m[j], mb)
        np.testing.assert_allclose(twin.P[j], second / (twin.w @ twin.s2))
    np.testing.assert_allclose(twin.m[0], m[0], rtol=1e-3)


def test_the_effect_is_taken_off_and_the_noise_is_of_the_reward_alone():
    twin = Tracker(2, 0, q=(0,), share=0)
    for arm, reward in ((0, 0.0), (1, 2.0)):
        twin.act(NOTHING)
        twin.learn(arm, reward)
    # Of arm 1: prior mean 0, variance 1.5; the mean 2 * 1.5 / 2.5, the variance 1.5 / 2.5.
    assert twin.m[0, 1, 0] == pytest.approx(1.2)
    assert twin.s2[0] == pytest.approx((4 / 2.5 + 2 * 1.0) / (1.999 + 2))
    twin.logodds[1], twin.gn[1], twin.ge[1] = 0.0, 1, 3.0
    twin.act(NOTHING)
    assert (twin.ps, twin.g) == (0.5, 1.5)
    twin.learn(1, 2.95)
    assert twin.m[0, 1, 0] == pytest.approx(1.2 + (2.95 - 0.75 - 1.2) * 0.6 / 1.6)
    assert twin.ge[1] == pytest.approx(3.0 + 2.95 - 1.2)
