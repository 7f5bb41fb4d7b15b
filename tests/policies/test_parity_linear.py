"""The linear policies against transcriptions of their pseudocode, step by step."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, build_policy
from tests.policies.playing import HORIZON, KEY, STEPS, coins, masks_for, play, wheel
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
    wrong, clear = [], 0
    for step in play(name, spec, rewards, masks, contexts):
        context = contexts[step.t].astype(float)
        index = np.where(masks[step.t], twin.index(context), -np.inf)
        close = index > index.max() - 1e-4 * twin.width
        probabilities = np.asarray(step.decision.probabilities)
        assert probabilities[step.arm] > 0
        if probabilities[~close].any():
            wrong.append(step.t)
        clear += close.sum() == 1
        twin.update(step.arm, context, float(step.reward))
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
    twin = twin(5, 3)
    normals_of = jax.jit(partial(jax.random.normal, shape=(5,)))
    for step in play("d_lin_ts" + settings, WHEEL, rewards, masks, contexts):
        context, available = contexts[step.t].astype(float), masks[step.t]
        means, deviations = twin.posterior(context)
        scores = means + deviations * np.asarray(normals_of(step.key))
        best = np.max(scores[available])
        assert available[step.arm]
        assert scores[step.arm] > best - 1e-3, f"step {step.t}"
        if step.t % 100 == 0:
            probabilities = paper.best_of_normals(means, deviations, available)
            assert np.abs(probabilities - step.decision.probabilities).max() < 2e-3, (
                f"step {step.t}"
            )
        twin.update(step.arm, context, float(step.reward))


def test_d_lin_ts_comes_back_to_the_prior():
    """All other arms fade while one is pulled."""
    policy = build_policy("d_lin_ts(discount=0.9)", WHEEL)
    context, everything = jnp.array([0.5, -0.5]), jnp.ones(5, bool)
    start = policy.init(KEY)
    ticket = jax.jit(policy.act)(KEY, start, context, everything)[0].ticket
    once = policy.learn(start, ticket._replace(arm=jnp.int32(3)), jnp.float32(50))
    faded, learn = once, jax.jit(policy.learn)
    for _ in range(200):
        faded = learn(faded, ticket._replace(arm=jnp.int32(1)), jnp.float32(50))
    assert once.information[3].max() >= 1
    assert faded.information[3].max() < 1e-8
    assert faded.moment[3].max() < 1e-6
    np.testing.assert_allclose(faded.information[1][-1, -1], 10, rtol=1e-4)  # 1 / (1 - 0.9)


@pytest.mark.parametrize("window", [300, 3000])
def test_the_sums_of_a_window_do_not_drift(window):
    """Over 20 windows, while arms come and go; all but one reward of an arm have just gone."""
    spec = BanditSpec(3, 2, reward_range=(0.0, 50.0))
    policy = build_policy(f"sw_lin_ucb(window={window})", spec)
    ticket = policy.act(KEY, policy.init(KEY), jnp.zeros(2), jnp.ones(3, bool))[0].ticket
    steps = 21 * window - 1

    def learn(state, t):
        key = jax.random.fold_in(KEY, t)
        context = jax.random.normal(key, (2,))
        arm = (t // (2 * window)) % 3  # for two windows each, so that the others are forgotten
        pulled = ticket._replace(features=jnp.append(context, 1.0), arm=arm)
        return policy.learn(state, pulled, 50 - 10 * jnp.abs(context[0])), None

    state, _ = jax.jit(lambda state: jax.lax.scan(learn, state, jnp.arange(steps)))(
        policy.init(KEY)
    )
    z = np.asarray(state.memory.inputs, float)
    for arm in range(3):
        own = np.asarray(state.memory.arms) == arm
        precision = np.eye(3) + z[own].T @ z[own]
        theta = np.linalg.solve(precision, z[own].T @ np.asarray(state.memory.rewards[own], float))
        assert np.abs(state.posterior.mean[arm] - theta).max() < 0.02
        np.testing.assert_allclose(
            state.posterior.covariance[arm], np.linalg.inv(precision), atol=1e-3
        )


@pytest.mark.parametrize("name", ["lin_ucb", "d_lin_ts", "d_lin_ucb", "sw_lin_ucb"])
def test_features_of_very_different_sizes_do_no_harm(name):
    contexts, rewards = wheel(np.random.default_rng(5), 5)
    contexts *= np.float32([1e3, 1e-3])
    for step in play(name, WHEEL, rewards, np.ones((STEPS, 5), bool), contexts):
        assert np.isfinite(step.decision.probabilities).all()


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
