"""The linear policies against transcriptions of their pseudocode, step by step."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, Observation, build_policy
from tests.policies.playing import (
    HORIZON,
    KEY,
    STEPS,
    assert_best,
    coins,
    compiled,
    decide_again,
    masks_for,
    normals,
    play,
    wheel,
)
from tests.policies.transcriptions import linear as paper

WHEEL = BanditSpec(5, 2, HORIZON, (-10.0, 50.0), noise=5.0)
COINS = BanditSpec(5, 0, HORIZON)
LONG = (3 * HORIZON) ** (2 / 3)  # the default memory on the wheel
UCB_CASES = {
    "lin_ucb": paper.LinUcb,
    "lin_ucb(alpha=0.3, precision=0.5)": partial(paper.LinUcb, alpha=0.3, ridge=0.5),
    "lin_ucb(delta=0.05, precision=2)": partial(paper.LinUcb, delta=0.05, ridge=2.0),
    "d_lin_ucb": partial(paper.DLinUcb, discount=1 - 1 / LONG),
    "d_lin_ucb(discount=0.98, alpha=0.3, precision=0.5)": partial(
        paper.DLinUcb, discount=0.98, alpha=0.3, ridge=0.5
    ),
    "d_lin_ucb(discount=0.95, delta=0.05, precision=2)": partial(
        paper.DLinUcb, discount=0.95, delta=0.05, ridge=2.0
    ),
    "sw_lin_ucb": partial(paper.SwLinUcb, window=331),
    "sw_lin_ucb(window=60, alpha=0.3, precision=0.5)": partial(
        paper.SwLinUcb, window=60, alpha=0.3, ridge=0.5
    ),
    "sw_lin_ucb(window=30, delta=0.05, precision=2)": partial(
        paper.SwLinUcb, window=30, delta=0.05, ridge=2.0
    ),
}


def jumping_wheel(rng):
    """The wheel, whose arms change places in the middle."""
    contexts, rewards = wheel(rng, 5)
    rewards[STEPS // 2 :] = np.roll(rewards[STEPS // 2 :], 2, axis=1)
    return contexts, rewards


def coin_tosses(rng):
    return np.zeros((STEPS, 0), np.float32), coins(rng)


def disagreements(name, twin, spec, problem, masked):
    """Steps in which the policy pulls another arm than the twin, and how many have a clear best.

    A best index is clear where no rounding of float32 may change it: not where arms tie that have
    never been pulled.
    """
    rng = np.random.default_rng(1)
    contexts, rewards = problem(rng)
    masks = masks_for(rng, 5, masked)
    game = play(name, spec, rewards, masks, contexts)
    wrong, clear = [], 0
    for t, arm, reward in game.pulls():
        context, probabilities = contexts[t].astype(float), game.decisions.probabilities[t]
        index = np.where(masks[t], twin.index(context), -np.inf)
        close = index > index.max() - 1e-4 * twin.width
        assert probabilities[arm] > 0
        if probabilities[~close].any():
            wrong.append(t)
        clear += close.sum() == 1
        twin.update(arm, context, reward)
    return wrong, clear


@pytest.mark.parametrize("name", UCB_CASES)
def test_ucb_on_a_wheel(name):
    twin = UCB_CASES[name](5, 3, WHEEL)
    wrong, clear = disagreements(name, twin, WHEEL, jumping_wheel, masked="alpha" in name)
    assert not wrong
    assert clear > 0.9 * STEPS


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("lin_ucb", paper.LinUcb),
        ("d_lin_ucb(discount=0.99)", partial(paper.DLinUcb, discount=0.99)),
        ("sw_lin_ucb(window=50)", partial(paper.SwLinUcb, window=50)),
    ],
)
def test_ucb_without_a_context(name, twin):
    """Arms of equal counts and sums tie, here and there."""
    wrong, clear = disagreements(name, twin(5, 1, COINS), COINS, coin_tosses, masked=True)
    assert not wrong
    assert clear > 0.5 * STEPS


def test_the_mistake_of_public_code_would_be_noticed():
    name = "d_lin_ucb(discount=0.98, alpha=0.3, precision=0.5)"
    twin = paper.MistakenDLinUcb(5, 3, WHEEL, discount=0.98, alpha=0.3, ridge=0.5)
    wrong, _ = disagreements(name, twin, WHEEL, jumping_wheel, masked=True)
    assert len(wrong) > 10


def test_a_discount_of_one_forgets_nothing():
    twin = paper.LinUcb(5, 3, WHEEL, delta=0.05)
    name = "d_lin_ucb(discount=1, delta=0.05)"
    # Its norm is V^-1 W V^-1 = V^-1.
    assert not disagreements(name, twin, WHEEL, jumping_wheel, masked=False)[0]


@pytest.mark.parametrize(
    ("settings", "twin"),
    [
        ("", paper.DLinTs),
        (
            "(discount=0.95, precision=0.5, variance=900.0)",
            partial(paper.DLinTs, discount=0.95, ridge=0.5, variance=900.0),
        ),
    ],
)
def test_d_lin_ts(settings, twin):
    """By the defaults, and with a variance that keeps all arms in play."""
    rng = np.random.default_rng(3)
    contexts, rewards = jumping_wheel(rng)
    masks = masks_for(rng, 5, masked=bool(settings))
    name, twin = "d_lin_ts" + settings, twin(5, 3)
    game = play(name, WHEEL, rewards, masks, contexts, probabilities=False)
    posteriors = []
    for t, arm, reward in game.pulls():
        context = contexts[t].astype(float)
        posteriors.append(twin.posterior(context))
        twin.update(arm, context, reward)
    means, deviations = np.array(posteriors).swapaxes(0, 1)
    assert_best(game, means + deviations * normals(5), masks, within=1e-3)
    for t in range(0, STEPS, 100):
        probabilities = paper.best_of_normals(means[t], deviations[t], masks[t])
        decision = decide_again(name, WHEEL, game, t, masks[t], contexts[t])
        assert np.abs(probabilities - decision.probabilities).max() < 2e-3, f"step {t}"


def test_d_lin_ts_comes_back_to_the_prior():
    """All other arms fade while one is pulled."""
    init, act, learn = compiled("d_lin_ts(discount=0.9)", WHEEL)
    start = init(KEY)
    ticket = act(KEY, start, Observation(np.float32([0.5, -0.5]), np.ones(5, bool)))[0].ticket
    once = learn(start, ticket._replace(arm=np.int32(3)), np.float32(50))
    faded = once
    for _ in range(200):
        faded = learn(faded, ticket._replace(arm=np.int32(1)), np.float32(50))
    once, faded = (jax.tree.map(np.asarray, state) for state in (once, faded))
    assert once.information[3].max() >= 1
    assert faded.information[3].max() < 1e-8
    assert faded.moment[3].max() < 1e-6
    np.testing.assert_allclose(faded.information[1][-1, -1], 10, rtol=1e-4)  # 1 / (1 - 0.9)


@pytest.mark.parametrize("window", [300, 3000])
def test_the_sums_of_a_window_do_not_drift(window):
    """Over 20 windows, while arms come and go; all but one reward of an arm have just gone."""
    spec = BanditSpec(3, 2, reward_range=(0.0, 50.0))
    init, act, learn = compiled(f"sw_lin_ucb(window={window})", spec)
    ticket = act(KEY, init(KEY), Observation(np.zeros(2, np.float32), np.ones(3, bool)))[0].ticket
    steps = 21 * window - 1

    def step(state, t):
        key = jax.random.fold_in(KEY, t)
        context = jax.random.normal(key, (2,))
        arm = (t // (2 * window)) % 3  # for two windows each, so that the others are forgotten
        pulled = ticket._replace(features=jnp.append(context, 1.0), arm=arm)
        return learn(state, pulled, 50 - 10 * jnp.abs(context[0])), None

    state, _ = jax.jit(lambda state: jax.lax.scan(step, state, jnp.arange(steps)))(init(KEY))
    state = jax.tree.map(np.asarray, state)
    z, rewards = (x.astype(float) for x in (state.memory.inputs, state.memory.rewards))
    for arm in range(3):
        own = state.memory.arms == arm
        precision = np.eye(3) + z[own].T @ z[own]
        theta = np.linalg.solve(precision, z[own].T @ rewards[own])
        assert np.abs(state.posterior.mean[arm] - theta).max() < 0.02
        np.testing.assert_allclose(
            state.posterior.covariance[arm], np.linalg.inv(precision), atol=1e-3
        )


@pytest.mark.parametrize("name", ["lin_ucb", "d_lin_ts", "d_lin_ucb", "sw_lin_ucb"])
def test_features_of_very_different_sizes_do_no_harm(name):
    contexts, rewards = wheel(np.random.default_rng(5), 5)
    contexts *= np.float32([1e3, 1e-3])
    game = play(name, WHEEL, rewards, np.ones((STEPS, 5), bool), contexts)
    assert np.isfinite(game.decisions.probabilities).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lin_ucb(alpha=-1)", "alpha must be a number of at least 0, got -1"),
        ("lin_ucb(precision=0)", "precision must be a positive number, got 0"),
        ("lin_ucb(delta=0)", r"delta must be none or a probability in \(0, 1\), got 0"),
        ("sw_lin_ucb(delta='x')", r"delta must be none or a probability in \(0, 1\), got 'x'"),
        ("sw_lin_ucb(window=0)", "window must be a whole number of at least 1, got 0"),
        ("sw_lin_ucb(window=2.5)", "window must be a whole number of at least 1, got 2.5"),
        ("d_lin_ucb(discount=1.5)", r"discount must be a probability in \[0, 1\], got 1.5"),
        ("d_lin_ts(discount=-0.1)", r"discount must be a probability in \[0, 1\], got -0.1"),
        ("d_lin_ts(variance=0)", "variance must be a positive number, got 0"),
        ("d_lin_ts(precision=none)", "precision must be a positive number, got None"),
    ],
)
def test_bad_settings_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        build_policy(text, BanditSpec(3, horizon=100))


def test_an_unknown_horizon_is_ten_thousand():
    """(3 * 10000)^(2/3) = 965.5 on the wheel; never more than the horizon."""
    state = build_policy("sw_lin_ucb", WHEEL._replace(horizon=None)).init(KEY)
    assert state.memory.arms.size == 966
    short = build_policy("sw_lin_ucb", BanditSpec(5, 40, horizon=50)).init(KEY)
    assert short.memory.arms.size == 50
