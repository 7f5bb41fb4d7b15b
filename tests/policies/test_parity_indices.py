"""Index policies and epsilon-greedy: the same probabilities as transcriptions of their formulas."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, Observation, build_policy
from driftbandits.numerics.kl import upper_score
from tests.policies.playing import (
    HORIZON,
    KEY,
    NOISE,
    STEPS,
    Array,
    Game,
    Generator,
    Problem,
    assert_probabilities,
    close_arms,
    coins,
    compiled,
    key_of,
    masks_for,
    play,
    probabilities_of,
    rotting_arms,
)
from tests.policies.transcriptions import indices as paper

SPEC = BanditSpec(5, 0, HORIZON, noise=NOISE)
WIDE = SPEC._replace(reward_range=(-10.0, 50.0))


def wide_arms(rng: Generator) -> Array:
    """Rewards like the wheel's, some of them beyond the range."""
    means = np.array([1.0, 1.2, 5.0, 20.0, 25.0])
    return (means + 20 * rng.standard_normal((STEPS, 5))).astype(np.float32)


COINS, MASKED, CLOSE = (coins, False), (coins, True), (close_arms, False)
SOME = [COINS, MASKED]
SOME_WINDOW = math.ceil(4 * math.sqrt(HORIZON * math.log(HORIZON)))
SOME_DISCOUNT = 1 - 1 / (4 * math.sqrt(HORIZON))
ROTTING = (rotting_arms, False)

Twin = Callable[..., Any]
TWINS: dict[str, tuple[Twin, list[tuple[Problem, bool]]]] = {
    "sw_ucb": (partial(paper.SwUcb, window=SOME_WINDOW), [COINS, (close_arms, True)]),
    "sw_ucb(window=50, xi=0.3)": (partial(paper.SwUcb, window=50, xi=0.3), [MASKED, CLOSE]),
    "sw_ucb(window=3)": (partial(paper.SwUcb, window=3), [MASKED]),
    "sw_ucb(window=200, scale=0.1)": (partial(paper.SwUcb, window=200, b=0.1), [CLOSE]),
    "d_ucb": (partial(paper.DUcb, discount=SOME_DISCOUNT), [COINS, (close_arms, True)]),
    "d_ucb(discount=0.9, xi=0.1)": (partial(paper.DUcb, discount=0.9, xi=0.1), [MASKED, CLOSE]),
    "d_ucb(discount=1.0, scale=0.2)": (partial(paper.DUcb, discount=1.0, b=0.2), [CLOSE]),
    "kl_ucb": (paper.KlUcb, [*SOME, (close_arms, True)]),
    "kl_ucb(c=3.0)": (partial(paper.KlUcb, c=3.0), [COINS]),
    "epsilon_greedy": (paper.EpsilonGreedy, [*SOME, CLOSE]),
    "epsilon_greedy(epsilon=0.3, rate=0.2)": (
        partial(paper.EpsilonGreedy, epsilon=0.3, rate=0.2),
        [MASKED, CLOSE],
    ),
    "raw_ucb": (paper.RawUcb, [*SOME, (close_arms, True), ROTTING]),
    "raw_ucb(alpha=0.2, longest=40)": (partial(paper.RawUcb, alpha=0.2, longest=40), [CLOSE]),
    "raw_ucb(longest=200)": (partial(paper.RawUcb, longest=200), [ROTTING]),  # not whole strides
    "eff_raw_ucb": (paper.DyadicRawUcb, [*SOME, (close_arms, True), ROTTING]),
    "eff_raw_ucb(ratio=1.3, alpha=0.2)": (
        partial(paper.EffRawUcb, ratio=1.3, alpha=0.2),
        [MASKED, ROTTING],
    ),
}
CASES = [
    pytest.param(name, *case, id=f"{name}-{case[0].__name__}" + "-masked" * case[1])
    for name, (_, cases) in TWINS.items()
    for case in cases
]


def assert_same_game(name: str, spec: BanditSpec, twin: Any, rewards: Array, masks: Array) -> Game:
    """The game of a policy that has the probabilities of its twin in every step."""
    game = play(name, spec, rewards, masks)
    assert len(game.arms) == STEPS
    assert_probabilities(game, probabilities_of(twin, game, masks))
    return game


@pytest.mark.parametrize(("name", "problem", "masked"), CASES)
def test_parity(name: str, problem: Problem, masked: bool) -> None:
    rng = np.random.default_rng(1)
    rewards = problem(rng)
    num_arms = rewards.shape[1]
    masks = masks_for(rng, num_arms, masked)
    twin = TWINS[name][0](num_arms, NOISE)
    assert_same_game(name, SPEC._replace(num_arms=num_arms), twin, rewards, masks)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("sw_ucb(window=100)", partial(paper.SwUcb, window=100, b=60.0)),
        ("d_ucb(discount=0.95, xi=0.1)", partial(paper.DUcb, discount=0.95, xi=0.1, b=60.0)),
        ("kl_ucb", partial(paper.KlUcb, reward_range=(-10.0, 50.0))),
    ],
)
def test_parity_on_a_wide_range(name: str, twin: Twin) -> None:
    """The bonus grows with the range, and what is for [0, 1] clips and scales."""
    rng = np.random.default_rng(2)
    rewards, masks = wide_arms(rng), masks_for(rng, 5, True)
    assert_same_game(name, WIDE, twin(5), rewards, masks)


def test_d_ucb_knows_an_arm_whose_count_has_faded() -> None:
    """An arm is infinitely good only before its first pull, not whenever its count is below 1."""
    rng = np.random.default_rng(3)
    rewards, masks = coins(rng), np.ones((STEPS, 5), bool)
    twin = partial(paper.DUcb, discount=0.9, xi=0.1)
    game = assert_same_game("d_ucb(discount=0.9, xi=0.1)", SPEC, twin(5), rewards, masks)
    again, faded = twin(5), 0
    for _, arm, reward in game.pulls():
        counts, _ = again.counts_and_sums()
        faded += min(len(own) for own in again.rewards) > 0 and min(counts) < 1 <= counts[arm]
        again.update(arm, reward)
    assert faded > STEPS / 3


def test_d_ucb_forgets_an_arm_in_the_end() -> None:
    """Where float32 has nothing left of an arm, it is a new one."""
    init, act, learn = compiled("d_ucb(discount=0.5)", SPEC)
    state = learn(init(KEY), np.int32(1), np.float32(0))
    for _ in range(200):
        for arm in (0, 2, 3, 4):
            state = learn(state, np.int32(arm), np.float32(1))
    decision, _ = act(KEY, state, Observation(np.zeros(0, np.float32), np.ones(5, bool)))
    assert decision.arm == 1
    assert np.asarray(decision.probabilities).tolist() == [0, 1, 0, 0, 0]


def test_raw_ucb_leaves_a_rotten_arm() -> None:
    """Its good past does not count: soon after the drop the other arm is the one pulled."""
    rewards = rotting_arms(np.random.default_rng(4))
    spec, masks = SPEC._replace(num_arms=2), np.ones((STEPS, 2), bool)
    for name in ("raw_ucb", "eff_raw_ucb"):
        arms = play(name, spec, rewards, masks).arms
        assert arms[: STEPS // 4].mean() > 0.8
        assert arms[STEPS // 2 :].mean() < 0.6


LATE = [name for name in TWINS if "longest=40" in name or "=" not in name] + ["sw_ucb(window=3)"]


@pytest.mark.parametrize("name", LATE)
def test_late_rewards_count_from_their_arrival(name: str) -> None:
    """In bunches, the newest first, and every third one never: windows hold what came last."""
    rng = np.random.default_rng(5)
    rewards, masks = coins(rng), masks_for(rng, 5, True)
    twin = TWINS[name][0](5, NOISE)
    init, act, learn = compiled(name, SPEC)
    state, waiting = init(KEY), []
    for t in range(300):
        decision, state = act(key_of(t), state, Observation(np.zeros(0, np.float32), masks[t]))
        probabilities, mine = twin.choose(masks[t]), np.asarray(decision.probabilities)
        assert np.abs(mine - probabilities).max() < 1e-6, f"step {t}: {mine}, not {probabilities}"
        waiting.append((decision, rewards[t, decision.arm]))
        while t % 7 == 6 and waiting:
            old, reward = waiting.pop()
            if len(waiting) % 3:
                state = learn(state, old.ticket, reward)
                twin.update(int(old.arm), float(reward))


def test_sums_of_sw_ucb_do_not_drift() -> None:
    """After many laps of the ring they are what the window holds, up to one lap's rounding."""
    window, steps = 500, 200_300
    policy = build_policy(f"sw_ucb(window={window})", SPEC)
    rng = np.random.default_rng(6)
    arms, rewards = rng.integers(5, size=steps), rng.normal(50, 1, steps).astype(np.float32)

    @jax.jit
    def learn_all(arms: Any, rewards: Any) -> Any:
        def body(state: Any, pull: Any) -> Any:
            return policy.learn(state, *pull), None

        return jax.lax.scan(body, policy.init(KEY), (arms, rewards))[0]

    state = learn_all(jnp.asarray(arms, jnp.int32), rewards)
    last = arms[-window:], rewards[-window:].astype(float)
    sums = np.bincount(last[0], last[1], 5)
    assert (np.asarray(state.pulls) == np.bincount(last[0], minlength=5)).all()
    np.testing.assert_allclose(state.sums, sums, rtol=2e-6)


def test_kl_index_at_all_sizes() -> None:
    """Three steps of Newton's method against bisection, from one pull to ten million."""
    rng = np.random.default_rng(7)
    pulls = np.exp(rng.uniform(0, math.log(1e7), 2000)).astype(int)
    mean = (rng.integers(pulls + 1) / pulls).astype(np.float32)
    level = (np.log(pulls * np.exp(rng.uniform(0.1, 10, 2000))) / pulls).astype(np.float32)
    mean[:2], level[2] = (0, 1), 0
    score = np.asarray(jax.jit(upper_score)(mean, level), float)
    assert score[1] == np.finfo(np.float32).max
    assert score[2] == pytest.approx(-math.log1p(-float(mean[2])), rel=1e-4)
    for p, d, mine in zip(mean.astype(float), level.astype(float), score, strict=True):
        if p < 1 and d:
            theirs = paper.KlUcb.highest(p, d)
            bonus = theirs + math.log1p(-p)
            assert abs(mine - theirs) < 1e-4 * bonus + 3e-7 * theirs


def test_default_windows_follow_the_horizon() -> None:
    for horizon, window in [(None, 1214), (10_000, 1214), (60_000, 3250), (30, 30), (1, 1)]:
        state = build_policy("sw_ucb", BanditSpec(2, horizon=horizon)).init(KEY)
        assert state.arms.shape == (window,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sw_ucb(window=0)", "window must be a whole number of at least 1, got 0"),
        ("sw_ucb(window=1.5)", "window must be a whole number of at least 1, got 1.5"),
        ("sw_ucb(xi=-1)", "xi must be a number of at least 0, got -1"),
        ("sw_ucb(scale='x')", "scale must be a number of at least 0, got 'x'"),
        ("d_ucb(discount=0)", r"discount must be a number in \(0, 1\], got 0"),
        ("d_ucb(discount=1.1)", r"discount must be a number in \(0, 1\], got 1.1"),
        ("d_ucb(xi=-1)", "xi must be a number of at least 0, got -1"),
        ("d_ucb(scale=-1)", "scale must be a number of at least 0, got -1"),
        ("kl_ucb(c=-1)", "c must be a number of at least 0, got -1"),
        ("epsilon_greedy(epsilon=2)", r"epsilon must be a probability in \[0, 1\], got 2"),
        ("epsilon_greedy(rate=0)", r"rate must be a number in \(0, 1\], or none, got 0"),
        ("epsilon_greedy(rate=true)", r"rate must be a number in \(0, 1\], or none, got True"),
        ("raw_ucb(alpha=0)", "alpha must be a positive number, got 0"),
        ("raw_ucb(longest=0)", "longest must be a whole number of at least 1, got 0"),
        ("eff_raw_ucb(alpha=-1)", "alpha must be a positive number, got -1"),
        ("eff_raw_ucb(ratio=3)", r"ratio must be a number in \(1, 2\], got 3"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_policy(text, BanditSpec(3, horizon=100))
