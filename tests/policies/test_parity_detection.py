"""The change-detecting policies against transcriptions of their pseudocode, step by step."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, Observation, build_policy
from driftbandits.policies.bandit_over_bandit import choose_window, geometric_windows
from tests.policies.playing import (
    HORIZON,
    STEPS,
    Array,
    Generator,
    Problem,
    assert_probabilities,
    compiled,
    masks_for,
    play,
)
from tests.policies.transcriptions import detection as paper

NUM_ARMS = 4
MEANS = np.array([[0.2, 0.5, 0.9, 0.4], [0.9, 0.5, 0.1, 0.3], [0.3, 0.5, 0.1, 0.9]])
RANGES = {"coins": (0.0, 1.0), "bells": (-1.0, 2.0)}


def means_now() -> Array:
    """They change twice, and the last arm is the best one at the end."""
    return np.repeat(MEANS, STEPS // 3, axis=0)


def coins(rng: Generator) -> Array:
    return (rng.random((STEPS, NUM_ARMS)) < means_now()).astype(np.float32)


def bells(rng: Generator) -> Array:
    """Some of them outside the range."""
    return (3 * means_now() - 1 + 0.5 * rng.standard_normal((STEPS, NUM_ARMS))).astype(np.float32)


def share(reward: float, reward_range: tuple[float, float]) -> float:
    low, high = reward_range
    return (min(max(reward, low), high) - low) / (high - low)


CHANGES = 5
CUSUM = {
    "warm_up": 50,
    "drift": 0.1,
    "threshold": math.log(HORIZON / CHANGES) / (8 * 0.1),
    "exploration": 0.1 * math.sqrt(CHANGES / HORIZON * math.log(HORIZON / CHANGES)),
    "xi": 1.0,
}
BAR = math.sqrt(100 / 2 * math.log(2 * HORIZON))
M_UCB = {
    "window": 100,
    "threshold": BAR,
    "exploration": 0.05 * math.sqrt(6 * NUM_ARMS * (2 * BAR + 3 * 10) / (2 * HORIZON)),
    "xi": 1.0,
}
GLR = {
    "delta": 1 / math.sqrt(NUM_ARMS * CHANGES * HORIZON),
    "exploration": 0.1 * math.sqrt(NUM_ARMS * CHANGES * math.log(HORIZON) / HORIZON),
    "local": True,
    "loglog": 0.0,
    "every": 10,
    "stride": 10,
    "longest": HORIZON,
}
SHORT_GLR = "glr_ucb(delta=0.5, exploration=0.3, loglog=1.5, check_every=3, stride=7, longest=40)"
BLOCK = 179  # 4 sqrt(2000)
BOB = {
    "block": BLOCK,
    "windows": [80, BLOCK],
    "gamma": math.sqrt(2 * math.log(2) / ((math.e - 1) * 12)),
    "xi": 0.3,
}

problems = pytest.mark.parametrize(
    ("problem", "masked"), [(coins, False), (coins, True), (bells, True)]
)


def setting(problem: Problem, masked: bool) -> tuple[BanditSpec, Array, Array]:
    rng = np.random.default_rng(11)
    rewards = problem(rng)
    spec = BanditSpec(NUM_ARMS, 0, HORIZON, RANGES[problem.__name__])
    return spec, rewards, masks_for(rng, NUM_ARMS, masked)


def play_beside(name: str, twin, problem: Problem, masked: bool) -> Array:
    """Probabilities and alarms, step for step; the number of alarms."""
    spec, rewards, masks = setting(problem, masked)
    game = play(name, spec, rewards, masks)
    probabilities, alarms = [], []
    for t, arm, reward in game.pulls():
        probabilities.append(twin.choose(masks[t]))
        alarms.append(np.array(twin.alarms))
        twin.update(arm, share(reward, spec.reward_range))
    assert_probabilities(game, probabilities)
    np.testing.assert_array_equal(game.states.alarms, alarms)
    return np.asarray(twin.alarms)


@problems
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cusum_ucb", CUSUM),
        (
            "cusum_ucb(warm_up=15, drift=0.05, threshold=3.7, exploration=0.3, xi=0.5)",
            {"warm_up": 15, "drift": 0.05, "threshold": 3.7, "exploration": 0.3, "xi": 0.5},
        ),
    ],
    ids=["default", "nervous"],
)
def test_cusum_ucb(name: str, settings: dict, problem: Problem, masked: bool) -> None:
    assert play_beside(name, paper.CusumUcb(NUM_ARMS, **settings), problem, masked).sum() > 1


@problems
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("m_ucb(window=100)", M_UCB),
        (
            "m_ucb(window=30, threshold=9.3, exploration=0.3, xi=0.5)",
            {"window": 30, "threshold": 9.3, "exploration": 0.3, "xi": 0.5},
        ),
    ],
    ids=["formulas", "nervous"],
)
def test_m_ucb(name: str, settings: dict, problem: Problem, masked: bool) -> None:
    assert play_beside(name, paper.MUcb(NUM_ARMS, **settings), problem, masked) > 0


@problems
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("glr_ucb", GLR),
        (
            "glr_ucb(restart='global')",
            {**GLR, "local": False, "delta": (CHANGES * HORIZON) ** -0.5},
        ),
        (
            SHORT_GLR,
            {"delta": 0.5, "exploration": 0.3, "loglog": 1.5}
            | {"local": True, "every": 3, "stride": 7, "longest": 40},
        ),
    ],
    ids=["local", "global", "short"],
)
def test_glr_ucb(name: str, settings: dict, problem: Problem, masked: bool) -> None:
    """Bounds that differ by less than float32 can tell may go either way."""
    spec, rewards, masks = setting(problem, masked)
    game = play(name, spec, rewards, masks)
    twin = paper.GlrKlUcb(NUM_ARMS, **settings)
    compared, probabilities, alarms = [], [], []
    for t, arm, reward in game.pulls():
        available, index = masks[t], twin.index()
        best = available & (index >= index[available].max() - 1e-5)
        if best.sum() == 1 or np.isinf(index[best]).all():
            compared.append(t)
            probabilities.append(paper.mixed(best / best.sum(), twin.exploration, available))
        alarms.append(list(twin.alarms))
        twin.update(arm, share(reward, spec.reward_range))
    assert_probabilities(game, probabilities, steps=compared)
    np.testing.assert_array_equal(game.states.alarms, alarms)
    assert sum(twin.alarms) > 0
    assert len(compared) > STEPS / 2


def test_glr_ucb_tests_a_history_longer_than_its_memory() -> None:
    """Otherwise the case of `longest` above would show nothing."""
    spec, rewards, masks = setting(coins, masked=False)
    assert play(SHORT_GLR, spec, rewards, masks).states.arms.pulls.max() > 100


@problems
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bandit_over_bandit", BOB),
        (
            "bandit_over_bandit(block=60, windows=3, shortest=5, gamma=0.9, xi=0.2)",
            {"block": 60, "windows": [5, 17, 60], "gamma": 0.9, "xi": 0.2},
        ),
        (
            "bandit_over_bandit(block=25, windows=1, shortest=25)",
            {"block": 25, "windows": [25], "gamma": 1.0, "xi": BOB["xi"]},
        ),
    ],
    ids=["default", "short", "restarts"],
)
def test_bandit_over_bandit(name: str, settings: dict, problem: Problem, masked: bool) -> None:
    """Each block's window is taken over from the policy, with its probability compared."""
    spec, rewards, masks = setting(problem, masked)
    game = play(name, spec, rewards, masks)
    ticket = game.decisions.ticket
    twin = paper.BanditOverBandit(NUM_ARMS, **settings)
    chosen, probabilities = set(), []
    for t, arm, reward in game.pulls():
        if t % twin.block == 0:
            if t:
                twin.end_block()
            window = int(ticket.chosen[t])
            expected = twin.window_probabilities()[window]
            assert float(ticket.probability[t]) == pytest.approx(expected, abs=1e-5)
            twin.begin_block(window)
            chosen.add(window)
        probabilities.append(twin.choose(masks[t]))
        twin.update(arm, share(reward, spec.reward_range))
    assert_probabilities(game, probabilities)
    assert len(chosen) > len(twin.windows) // 2


def test_windows_are_drawn_with_their_probabilities() -> None:
    logits = jnp.array([0.3, -0.4, 1.1])
    keys = jax.random.split(jax.random.key(3), 4000)
    drawn = jax.vmap(partial(choose_window, logits=logits, gamma=0.3))(keys)
    probabilities = 0.7 * np.exp(logits) / np.exp(logits).sum() + 0.1
    share_drawn = np.bincount(drawn.chosen, minlength=3) / 4000
    assert (
        np.abs(share_drawn - probabilities)
        < 4 * np.sqrt(probabilities * (1 - probabilities) / 4000)
    ).all()
    np.testing.assert_allclose(
        drawn.probability, probabilities[np.asarray(drawn.chosen)], atol=1e-6
    )


def test_a_late_reward_is_credited_to_the_window_of_its_decision() -> None:
    name = "bandit_over_bandit(block=2, windows=8, shortest=1)"
    init, act, learn = compiled(name, BanditSpec(NUM_ARMS, 0, HORIZON))
    state, everything = init(jax.random.key(0)), np.ones(NUM_ARMS, bool)
    nothing = np.zeros(0, np.float32)
    decision, state = act(jax.random.key(1), state, Observation(nothing, everything))
    late = decision.ticket
    for seed in range(2, 9):
        decision, state = act(jax.random.key(seed), state, Observation(nothing, everything))
    assert decision.ticket.chosen != late.chosen
    before, after = state.master.logits, learn(state, late, np.float32(1)).master.logits
    assert np.flatnonzero(np.asarray(after != before)).tolist() == [int(late.chosen)]


def test_windows_are_geometric() -> None:
    assert geometric_windows(10, 80, 4) == [10, 20, 40, 80]
    assert geometric_windows(10, 80, 1) == [80]
    assert geometric_windows(7, 7, 3) == [7, 7, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cusum_ucb(changes=0)", "changes must be a positive number, got 0"),
        ("cusum_ucb(warm_up=0)", "warm_up must be a whole number of at least 1, got 0"),
        ("cusum_ucb(drift=0)", "drift must be a positive number, got 0"),
        ("cusum_ucb(threshold=-1)", "threshold must be a positive number, got -1"),
        ("cusum_ucb(exploration=2)", r"exploration must be a probability in \[0, 1\], got 2"),
        ("cusum_ucb(xi=-1)", "xi must be a number of at least 0, got -1"),
        ("m_ucb(window=51)", "window must be an even number, got 51"),
        ("m_ucb(window=1)", "window must be a whole number of at least 2, got 1"),
        ("m_ucb(exploration=0)", r"exploration must be a share in \(0, 1\], got 0"),
        ("m_ucb(threshold=0)", "threshold must be a positive number, got 0"),
        ("m_ucb(changes='x')", "changes must be a positive number, got 'x'"),
        ("glr_ucb(restart='loca')", "restart must be one of local, global, .*; did you mean"),
        ("glr_ucb(delta=0)", r"delta must be a probability in \(0, 1\], got 0"),
        ("glr_ucb(stride=0)", "stride must be a whole number of at least 1, got 0"),
        ("glr_ucb(check_every=0)", "check_every must be a whole number of at least 1, got 0"),
        ("glr_ucb(longest=0)", "longest must be a whole number of at least 1, got 0"),
        ("glr_ucb(loglog=-1)", "loglog must be a number of at least 0, got -1"),
        ("bandit_over_bandit(block=0)", "block must be a whole number of at least 1, got 0"),
        ("bandit_over_bandit(windows=0)", "windows must be a whole number of at least 1, got 0"),
        ("bandit_over_bandit(block=9, shortest=10)", "shortest must be .* at most 9, got 10"),
        ("bandit_over_bandit(gamma=0)", r"gamma must be a number in \(0, 1\], got 0"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_policy(text, BanditSpec(3, horizon=100))
