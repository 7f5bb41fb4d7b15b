"""The policies against independent transcriptions of their pseudocode, step by step."""

from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pytest

from driftbandits import BanditSpec, Observation
from driftbandits.numerics.bernoulli_thompson import sample_log_odds
from tests.policies.playing import (
    HORIZON,
    KEY,
    KEYS,
    NOISE,
    STEPS,
    Game,
    Problem,
    assert_probabilities,
    close_arms,
    coins,
    compiled,
    drawn,
    masks_for,
    normals,
    play,
    probabilities_of,
    rotting_arms,
    wheel,
)
from tests.policies.transcriptions import classic as paper

CLOSE, ROTTING = (close_arms, False), (rotting_arms, False)
FIVE_ARMS = [CLOSE, (close_arms, True), (coins, True)]
WINDOW_POLICIES = {
    "ucb": (paper.Ucb, FIVE_ARMS),
    "ucb(scale=0.2)": (partial(paper.Ucb, scale=0.2), FIVE_ARMS),
    "swa": (partial(paper.Swa, horizon=HORIZON), FIVE_ARMS),
    "swa(doubling=true)": (paper.DoublingSwa, FIVE_ARMS),
    "fewa": (paper.Fewa, [*FIVE_ARMS, ROTTING]),
    "fewa(alpha=0.5)": (partial(paper.Fewa, alpha=0.5), [CLOSE, ROTTING]),  # longer windows
    "fewa(longest=40)": (partial(paper.Fewa, longest=40), [CLOSE]),
    "eff_fewa": (paper.EffFewa, [*FIVE_ARMS, ROTTING]),
    "eff_fewa(ratio=1.3)": (partial(paper.EffFewa, ratio=1.3), [*FIVE_ARMS, ROTTING]),
}
WINDOW_CASES = [
    pytest.param(name, *case, id=f"{name}-{case[0].__name__}" + "-masked" * case[1])
    for name, (_, cases) in WINDOW_POLICIES.items()
    for case in cases
]


@pytest.mark.parametrize(("name", "problem", "masked"), WINDOW_CASES)
def test_window_policies(name: str, problem: Problem, masked: bool) -> None:
    rng = np.random.default_rng(1)
    rewards = problem(rng)
    num_arms = rewards.shape[1]
    masks = masks_for(rng, num_arms, masked)
    game = play(name, BanditSpec(num_arms, 0, HORIZON, noise=NOISE), rewards, masks)
    twin = WINDOW_POLICIES[name][0](num_arms, NOISE)
    assert_probabilities(game, probabilities_of(twin, game, masks))


def posterior_sample(key: Any, wins: Any, losses: Any) -> Any:
    """From the half of the key that the policy spends on it; test_gamma.py tests the sampler."""
    return jax.nn.sigmoid(sample_log_odds(jax.random.split(key)[0], 1.0 + wins, 1.0 + losses))


@pytest.mark.parametrize(
    ("problem", "reward_range", "masked"),
    [(coins, (0.0, 1.0), False), (close_arms, (0.0, 1.0), True), (close_arms, (-1.0, 2.5), False)],
)
def test_thompson(problem: Problem, reward_range: tuple[float, float], masked: bool) -> None:
    rng = np.random.default_rng(2)
    rewards = problem(rng)
    masks = masks_for(rng, 5, masked)
    game = play(
        "thompson", BanditSpec(5, 0, HORIZON, reward_range), rewards, masks, probabilities=False
    )
    twin, wins, losses = paper.Thompson(5, reward_range), [], []
    for t, arm, reward in game.pulls():
        wins.append(twin.wins.copy())
        losses.append(twin.losses.copy())
        twin.update(arm, reward, float(game.decisions.ticket.level[t]))
    thetas = drawn(posterior_sample, np.array(wins), np.array(losses))
    for t, arm, _ in game.pulls():
        assert twin.choose(thetas[t], masks[t])[arm] > 0, f"step {t}"


@pytest.mark.parametrize(
    ("settings", "prior"), [("", ()), ("(precision=0.5, variance=900.0)", (0.5, 900.0))]
)
def test_lin_ts(settings: str, prior: tuple[float, ...]) -> None:
    """By the defaults, and with a variance that keeps all arms in play."""
    rng = np.random.default_rng(3)
    contexts, rewards = wheel(rng, 5)
    masks = masks_for(rng, 5, masked=bool(settings))
    name = "lin_ts" + settings
    game = play(name, BanditSpec(5, 2), rewards, masks, contexts, probabilities=False)
    twin = paper.LinTs(5, 3, *prior)
    for t, arm, reward in game.pulls():
        context = contexts[t].astype(float)
        assert twin.choose(context, normals(5)[t], masks[t])[arm] > 0, f"step {t}"
        twin.update(arm, context, reward)


TRAIN_EVERY = 50
AFTER_TRAINING, BETWEEN, OVERWRITTEN = [50, 1150], [57, 1157], [1300]  # counts of rewards
# A ridge of 10 keeps the condition of P below 1e4, so that float32 keeps three digits.
SIZES = f"hidden=8, batch=32, train_steps=5, train_every={TRAIN_EVERY}, memory=1200"
NEURAL_LINEAR = f"neural_linear({SIZES}, precision=10.0)", BanditSpec(3, 2)


@cache
def neural_linear_game() -> Game:
    contexts, rewards = wheel(np.random.default_rng(4), 3)
    masks = np.ones((STEPS, 3), bool)
    return play(*NEURAL_LINEAR, rewards, masks, contexts, probabilities=False)


@pytest.mark.parametrize("t", AFTER_TRAINING + BETWEEN + OVERWRITTEN)
def test_neural_linear_posterior(t: int) -> None:
    """From all of memory, seen through the present network."""
    state = neural_linear_game().state(t)
    inputs, arms, rewards = (part[:t] for part in state.memory[:3])
    z = paper.last_hidden_layer(state.fit.network, inputs)
    for arm in range(3):
        own = arms == arm
        direct = paper.bayesian_regression(z[own], rewards[own].astype(float), 10.0, 3.0, 3.0)
        for mine, theirs in zip((*state.posterior, *state.noise), direct, strict=True):
            assert np.max(np.abs(mine[arm] - theirs)) < 1e-3 * np.max(np.abs(theirs))


def test_neural_linear_schedule() -> None:
    """Every arm in turn at first; a new network after every TRAIN_EVERY rewards, not between."""
    game = neural_linear_game()
    assert game.arms[:9].tolist() == [0, 1, 2] * 3
    weights = game.states.fit.network[0].weights
    changed = [t for t in range(1, STEPS) if not np.array_equal(weights[t], weights[t - 1])]
    assert changed == list(range(TRAIN_EVERY, STEPS, TRAIN_EVERY))


@jax.jit
def arms_and_probabilities(key: Any, state: Any, inputs: Any) -> tuple[Any, Any]:
    """The arms of 4000 decisions, and the probabilities that one of them tells."""
    act = compiled(*NEURAL_LINEAR)[1]
    keys = jax.random.split(key, 4000)
    arms = jax.vmap(lambda key: act(key, state, Observation(inputs, np.ones(3, bool)))[0].arm)(keys)
    return arms, act(keys[0], state, Observation(inputs, np.ones(3, bool)))[0].probabilities


@pytest.mark.parametrize("t", [12, 80, 400, 700])
def test_neural_linear_probabilities(t: int) -> None:
    """Arms come up as often as the decision says, also where the noise is hardly known."""
    game = neural_linear_game()
    state, inputs = game.state(t), game.decisions.ticket.inputs[t]
    a, b = state.noise
    unknown = state.noise._replace(shape=0 * a + 1.5, scale=1.5 * b / a)
    arms, probabilities = arms_and_probabilities(KEYS[t], state._replace(noise=unknown), inputs)
    wins, expected = np.bincount(arms, minlength=3), 4000 * np.asarray(probabilities, float)
    assert (np.abs(wins - expected) < 4 * np.sqrt(expected * (1 - expected / 4000)) + 2).all()


def test_neural_linear_probabilities_where_no_feature_fires() -> None:
    """At the origin a new network's features vanish, and every score is exactly zero."""
    state = neural_linear_game().state(0)._replace(pulls=np.full(3, 3, np.int32))
    arms, probabilities = arms_and_probabilities(KEY, state, np.zeros(2, np.float32))
    assert np.sum(probabilities) == pytest.approx(1)
    assert (np.asarray(probabilities)[arms] > 0).all()
