"""NeuralUCB, NeuralTS and recurrent neural-linear against their formulas, by the same weights."""

from functools import cache, partial
from typing import Any

import jax
import numpy as np
import optax
import pytest

from driftbandits import BanditSpec, InputError, Observation, build_policy
from tests.policies.playing import (
    STEPS,
    Game,
    assert_best,
    close_arms,
    compiled,
    drawn,
    key_of,
    masks_for,
    normals,
    play,
    wheel,
)
from tests.policies.transcriptions import neural as paper

COUNT = 701  # steps of a run
BATCH, EVERY, TRAIN_STEPS, MEMORY = 16, 50, 3, 300
SMALL = (
    f"hidden=6, batch={BATCH}, train_every={EVERY}, train_steps={TRAIN_STEPS}, memory={MEMORY}, "
    "learning_rate=0.02, precision=0.01, variance=2.0"
)
WHEEL = BanditSpec(3, 2, reward_range=(-10.0, 50.0))
FREE = BanditSpec(5)


def problem_of(free: bool) -> tuple[BanditSpec, np.ndarray, np.ndarray, np.ndarray]:
    """Spec, contexts, rewards and masks: close arms without context, masked; or the wheel."""
    rng = np.random.default_rng(12)
    if free:
        return FREE, np.zeros((STEPS, 0), np.float32), close_arms(rng), masks_for(rng, 5, True)
    contexts, rewards = wheel(rng, 3)
    return WHEEL._replace(noise=3.0), contexts, rewards, masks_for(rng, 3, False)


@cache
def neural_game(name: str, free: bool) -> tuple[Game, np.ndarray, np.ndarray]:
    """The game, masks and contexts."""
    spec, contexts, rewards, masks = problem_of(free)
    probabilities = name == "neural_ucb"  # those of NeuralTS are integrals
    name = f"{name}({SMALL})"
    game = play(name, spec, rewards[:COUNT], masks, contexts, probabilities=probabilities)
    return game, masks, contexts


def normals_of_half_the_key(num_arms: int) -> np.ndarray:
    """The half that NeuralTS spends on its decision."""
    return drawn(lambda key: jax.random.normal(jax.random.split(key)[0], (num_arms,)))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_neural_scores(name: str, free: bool) -> None:
    """The pulled arm has the highest score, and U sums up the squares of its gradients."""
    game, masks, contexts = neural_game(name, free)
    spec = FREE if free else WHEEL
    twin = paper.NeuralBandit(
        spec.num_arms, 6 * (spec.num_arms * (spec.context_dim + 1) + 1), 0.01, 2
    )
    first, last = game.states.information
    found = []
    for t, arm, _ in game.pulls():
        weights = paper.exact(game.state(t).weights)
        found.append(twin.confidence(weights, contexts[t].astype(float)))
        if t % 250 == 249:
            mine = np.append(paper.dense(first[t]), last[t])
            np.testing.assert_allclose(mine, twin.information, rtol=1e-3)
        twin.pull(arm)
    means, deviations = np.array(found).swapaxes(0, 1)
    factor = normals_of_half_the_key(spec.num_arms)[:COUNT] if name == "neural_ts" else 1.0
    assert_best(game, means + deviations * factor, masks, within=1e-4)
    if name == "neural_ucb":
        assert (game.decisions.probabilities[np.arange(COUNT), game.arms] == 1).all()
    assert np.ptp(game.arms) == spec.num_arms - 1


def test_neural_schedule_and_memory() -> None:
    """The weights move after every EVERY rewards and not between; old rewards are overwritten."""
    game = neural_game("neural_ucb", False)[0]
    weights = game.states.weights.last
    moved = [t for t in range(1, COUNT) if not np.array_equal(weights[t], weights[t - 1])]
    assert moved == list(range(EVERY, COUNT, EVERY))
    memory = game.state(-1).memory
    kept = (game.rewards[-1 - MEMORY : -1].astype(float) + 10) / 60
    assert int(memory.seen) == COUNT - 1
    np.testing.assert_allclose(np.sort(memory.rewards), np.sort(kept), rtol=1e-5)


@jax.jit
def levels_of(key: Any) -> Any:
    """The uniform numbers of the minibatches, from the half of the key that is kept for them."""
    train_key = jax.random.split(key)[1]
    return [
        jax.random.uniform(jax.random.fold_in(train_key, i), (BATCH,)) for i in range(TRAIN_STEPS)
    ]


@pytest.mark.parametrize("t", [EVERY, 10 * EVERY])
def test_neural_training(t: int) -> None:
    """Minibatches from what is in memory: before it is full, and after."""
    game = neural_game("neural_ucb", False)[0]
    before, after = game.state(t - 1), game.state(t)
    memory = after.memory
    (first, last), blocks = paper.exact(before.weights), []
    for x, arm in zip(memory.inputs.astype(float), memory.arms, strict=True):
        blocks.append(paper.block(x, int(arm), 3))
    moments = optax.tree.get(before.optimizer, "mu"), optax.tree.get(before.optimizer, "nu")
    w, v = paper.dense(first), last
    (mw, mv), (sw, sv) = (
        (paper.dense(m.first), np.asarray(m.last)) for m in map(paper.exact, moments)
    )
    count, kept = int(optax.tree.get(before.optimizer, "count")), min(t, MEMORY)
    assert count == (t // EVERY - 1) * TRAIN_STEPS
    for level in levels_of(key_of(t - 1)):
        rows = (np.asarray(level) * np.float32(kept)).astype(int)
        inputs, targets = np.stack(blocks)[rows], np.asarray(memory.rewards, float)[rows]
        of_w, of_v = paper.mean_gradient(w, v, inputs, targets, 0.01 / kept)
        count += 1
        w, mw, sw = paper.adam(w, of_w, mw, sw, count, 0.02)
        v, mv, sv = paper.adam(v, of_v, mv, sv, count, 0.02)
    np.testing.assert_allclose(paper.dense(np.asarray(after.weights.first)), w, atol=2e-4)
    np.testing.assert_allclose(after.weights.last, v, atol=2e-4)
    assert np.abs(w - paper.dense(first)).max() > 0.02


HIDDEN, WINDOW, RATE = 4, 5, 0.01
RECURRENT = f"hidden={HIDDEN}, window={WINDOW}, learning_rate={RATE}, "
CHECKED = (3, 60, 300)
OWN_SETTINGS = "discount=0.95, prior_variance=0.2, variance=0.3"


def weights_after(
    twin: paper.RecurrentLinear, optimizer: Any, leaves: list, arm: int, reward: float
) -> list:
    """By one step of RMSprop, with the gradient by finite differences."""
    slopes = paper.numerical_gradient(partial(twin.loss, arm=arm, reward=reward), leaves)
    squares = jax.tree.leaves(optax.tree.get(optimizer, "nu"))
    return [
        paper.rmsprop(leaf, slope, np.asarray(square, float), RATE)[0]
        for leaf, slope, square in zip(leaves, slopes, squares, strict=True)
    ]


@pytest.mark.parametrize(
    ("settings", "model"),
    [("", (0.999, 0.03, 0.05**2 + 0.001)), (OWN_SETTINGS, (0.95, 0.2, 0.3))],
)
def test_recurrent_linear(settings: str, model: tuple[float, float, float]) -> None:
    """Scores at every step; posteriors and gradients where the window is short, and where full."""
    spec, contexts, rewards, masks = problem_of(free=bool(settings))
    low, high = spec.reward_range
    twin = paper.RecurrentLinear(spec.num_arms, spec.context_dim, HIDDEN, WINDOW, *model)
    name = f"recurrent_linear({RECURRENT}{settings})"
    game = play(name, spec, rewards[:302], masks, contexts, probabilities=False)
    expected: list[np.ndarray] = []
    found = []
    for t, arm, reward in game.pulls():
        state = game.state(t)
        leaves = [leaf.astype(float) for leaf in jax.tree.leaves(state.network)]
        if t - 1 in CHECKED:
            for mine, theirs in zip(leaves, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, atol=0.02 * RATE)
            mean, covariance = state.posterior
            np.testing.assert_allclose(mean, twin.mean, atol=2e-3)
            limit = 1e-3 * model[1]
            np.testing.assert_allclose(model[2] * covariance, twin.cov, atol=limit)
        found.append(twin.look(leaves, contexts[t].astype(float)))
        share = (reward - low) / (high - low)
        if t in CHECKED:
            expected = weights_after(twin, state.optimizer, leaves, arm, share)
        twin.update(leaves, arm, share)
    means, deviations = np.array(found).swapaxes(0, 1)
    scores = means + deviations * normals(spec.num_arms)[: len(means)]
    assert_best(game, scores, masks, within=1e-3)


def test_recurrent_linear_learns_a_late_reward_where_it_belongs() -> None:
    """A ticket brings its own history: what came after it changes nothing."""
    init, act, learn = compiled(f"recurrent_linear({RECURRENT}discount=1.0)", WHEEL)
    everything = np.ones(3, bool)
    state = init(jax.random.key(0))
    early, state = act(jax.random.key(1), state, Observation(np.float32([0.3, -0.6]), everything))
    at_once = learn(state, early.ticket, 40.0)
    for t in range(WINDOW + 2):
        _, state = act(
            jax.random.key(t), state, Observation(np.float32([-0.5, 0.1 * t]), everything)
        )
    late = learn(state, early.ticket, 40.0)
    for mine, theirs in zip(
        jax.tree.leaves((at_once.network, at_once.posterior)),
        jax.tree.leaves((late.network, late.posterior)),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(at_once.hidden, late.hidden)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("neural_ucb(hidden=0)", "hidden must be a whole number of at least 1, got 0"),
        ("neural_ucb(precision=0)", "precision must be a positive number, got 0"),
        ("neural_ts(variance=-1)", "variance must be a number of at least 0, got -1"),
        ("neural_ts(memory=0)", "memory must be a whole number of at least 1, got 0"),
        ("neural_ts(train_every=0)", "train_every must be a whole number of at least 1, got 0"),
        ("neural_ts(train_steps=-1)", "train_steps must be a whole number of at least 0, got -1"),
        ("neural_ts(batch=1.5)", "batch must be a whole number of at least 1, got 1.5"),
        ("neural_ts(learning_rate=0)", "learning_rate must be a positive number, got 0"),
        ("recurrent_linear(hidden=0)", "hidden must be a whole number of at least 1, got 0"),
        ("recurrent_linear(window=0)", "window must be a whole number of at least 1, got 0"),
        ("recurrent_linear(discount=2)", r"discount must be a probability in \[0, 1\], got 2"),
        ("recurrent_linear(prior_variance=0)", "prior_variance must be a positive number, got 0"),
        ("recurrent_linear(variance=0)", "variance must be a positive number, got 0"),
        ("recurrent_linear(learning_rate=-1)", "learning_rate must be a positive number, got -1"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_policy(text, FREE)
