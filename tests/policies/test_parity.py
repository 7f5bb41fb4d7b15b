"""The policies against independent transcriptions of their pseudocode, step by step."""

from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pytest

from driftbandits import BanditSpec
from driftbandits.numerics.coins import sample_log_odds
from tests.policies.playing import (
    HORIZON,
    KEY,
    NOISE,
    STEPS,
    Problem,
    Step,
    close_arms,
    coins,
    compiled,
    masks_for,
    play,
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
    twin = WINDOW_POLICIES[name][0](num_arms, NOISE)
    for step in play(name, BanditSpec(num_arms, 0, HORIZON, noise=NOISE), rewards, masks):
        probabilities, mine = twin.choose(masks[step.t]), np.asarray(step.decision.probabilities)
        assert np.abs(mine - probabilities).max() < 1e-6, (
            f"step {step.t}: {mine}, not {probabilities}"
        )
        assert probabilities[step.arm] > 0, f"step {step.t}"
        twin.update(step.arm, float(step.reward))


@jax.jit
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
    twin = paper.Thompson(5, reward_range)
    for step in play("thompson", BanditSpec(5, 0, HORIZON, reward_range), rewards, masks):
        theta = np.asarray(posterior_sample(step.key, twin.wins, twin.losses))
        assert twin.choose(theta, masks[step.t])[step.arm] > 0, f"step {step.t}"
        twin.update(step.arm, float(step.reward), float(step.decision.ticket.level))


normals_of = jax.jit(partial(jax.random.normal, shape=(5,)))


@pytest.mark.parametrize(
    ("settings", "prior"), [("", ()), ("(precision=0.5, variance=900.0)", (0.5, 900.0))]
)
def test_lin_ts(settings: str, prior: tuple[float, ...]) -> None:
    """By the defaults, and with a variance that keeps all arms in play."""
    rng = np.random.default_rng(3)
    contexts, rewards = wheel(rng, 5)
    masks = masks_for(rng, 5, masked=bool(settings))
    twin = paper.LinTs(5, 3, *prior)
    for step in play("lin_ts" + settings, BanditSpec(5, 2), rewards, masks, contexts):
        context, normals = contexts[step.t].astype(float), np.asarray(normals_of(step.key))
        assert twin.choose(context, normals, masks[step.t])[step.arm] > 0, f"step {step.t}"
        twin.update(step.arm, context, float(step.reward))


TRAIN_EVERY = 50
AFTER_TRAINING, BETWEEN, OVERWRITTEN = [50, 1150], [57, 1157], [1300]  # counts of rewards
# A ridge of 10 keeps the condition of P below 1e4, so that float32 keeps three digits.
SIZES = f"hidden=8, batch=32, train_steps=5, train_every={TRAIN_EVERY}, memory=1200"
NEURAL_LINEAR = f"neural_linear({SIZES}, precision=10.0)", BanditSpec(3, 2)


@cache
def neural_linear_run() -> list[Step]:
    contexts, rewards = wheel(np.random.default_rng(4), 3)
    return list(play(*NEURAL_LINEAR, rewards, np.ones((STEPS, 3), bool), contexts))


@pytest.mark.parametrize("t", AFTER_TRAINING + BETWEEN + OVERWRITTEN)
def test_neural_linear_posterior(t: int) -> None:
    """From all of memory, seen through the present network."""
    state = neural_linear_run()[t].state
    inputs, arms, rewards = (np.asarray(part)[:t] for part in state.memory[:3])
    z = paper.last_hidden_layer(state.fit.network, inputs)
    for arm in range(3):
        own = arms == arm
        direct = paper.bayesian_regression(z[own], rewards[own].astype(float), 10.0, 3.0, 3.0)
        for mine, theirs in zip((*state.posterior, *state.noise), direct, strict=True):
            assert np.max(np.abs(mine[arm] - theirs)) < 1e-3 * np.max(np.abs(theirs))


def test_neural_linear_schedule() -> None:
    """Every arm in turn at first; a new network after every TRAIN_EVERY rewards, not between."""
    run = neural_linear_run()
    assert [step.arm for step in run[:9]] == [0, 1, 2] * 3
    weights = [np.asarray(step.state.fit.network[0].weights) for step in run]
    changed = [t for t in range(1, STEPS) if not np.array_equal(weights[t], weights[t - 1])]
    assert changed == list(range(TRAIN_EVERY, STEPS, TRAIN_EVERY))


@jax.jit
def arms_and_probabilities(key: Any, state: Any, inputs: Any) -> tuple[Any, Any]:
    act = compiled(*NEURAL_LINEAR)[1]
    decide = jax.vmap(lambda key: act(key, state, inputs, np.ones(3, bool))[0])
    decisions = decide(jax.random.split(key, 4000))
    return decisions.arm, decisions.probabilities[0]


@pytest.mark.parametrize("t", [12, 80, 400, 700])
def test_neural_linear_probabilities(t: int) -> None:
    """Arms come up as often as the decision says, also where the noise is hardly known."""
    step = neural_linear_run()[t]
    a, b = step.state.noise
    unknown = step.state.noise._replace(shape=0 * a + 1.5, scale=1.5 * b / a)
    state = step.state._replace(noise=unknown)
    arms, probabilities = arms_and_probabilities(step.key, state, step.decision.ticket.inputs)
    wins, expected = np.bincount(arms, minlength=3), 4000 * np.asarray(probabilities, float)
    assert (np.abs(wins - expected) < 4 * np.sqrt(expected * (1 - expected / 4000)) + 2).all()


def test_neural_linear_probabilities_where_no_feature_fires() -> None:
    """At the origin a new network's features vanish, and every score is exactly zero."""
    init, act, _ = compiled(*NEURAL_LINEAR)
    state = init(KEY)._replace(pulls=np.full(3, 3, np.int32))
    decision, _ = act(KEY, state, np.zeros(2, np.float32), np.ones(3, bool))
    assert np.sum(decision.probabilities) == pytest.approx(1)
    assert decision.probabilities[decision.arm] > 0
