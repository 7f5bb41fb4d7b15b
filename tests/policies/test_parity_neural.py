"""NeuralUCB, NeuralTS and recurrent neural-linear against their formulas, by the same weights."""

from functools import cache, partial
from itertools import islice
from typing import Any

import jax
import numpy as np
import optax
import pytest

from driftbandits import BanditSpec, InputError, build_policy
from tests.policies.playing import STEPS, Step, close_arms, masks_for, play, wheel
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
def neural_run(name: str, free: bool) -> tuple[list[Step], np.ndarray, np.ndarray]:
    """Steps, masks and contexts."""
    spec, contexts, rewards, masks = problem_of(free)
    steps = play(f"{name}({SMALL})", spec, rewards, masks, contexts)
    return list(islice(steps, COUNT)), masks, contexts


normals_of = jax.jit(
    lambda key, count: jax.random.normal(jax.random.split(key)[0], (count,)), static_argnums=1
)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_neural_scores(name: str, free: bool) -> None:
    """The pulled arm has the highest score, and U sums up the squares of its gradients."""
    steps, masks, contexts = neural_run(name, free)
    spec = FREE if free else WHEEL
    twin = paper.NeuralBandit(
        spec.num_arms, 6 * (spec.num_arms * (spec.context_dim + 1) + 1), 0.01, 2
    )
    for step in steps:
        weights = paper.exact(step.state.weights)
        mean, deviation = twin.confidence(weights, contexts[step.t].astype(float))
        drawn = np.asarray(normals_of(step.key, spec.num_arms)) if name == "neural_ts" else 1.0
        scores = np.where(masks[step.t], mean + deviation * drawn, -np.inf)
        assert scores[step.arm] > scores.max() - 1e-4, f"step {step.t}"
        if name == "neural_ucb":
            assert step.decision.probabilities[step.arm] == 1
        if step.t % 250 == 249:
            first, last = step.state.information
            mine = np.append(paper.dense(np.asarray(first)), last)
            np.testing.assert_allclose(mine, twin.information, rtol=1e-3)
        twin.pull(step.arm)
    assert np.ptp([step.arm for step in steps]) == spec.num_arms - 1


def test_neural_schedule_and_memory() -> None:
    """The weights move after every EVERY rewards and not between; old rewards are overwritten."""
    steps = neural_run("neural_ucb", False)[0]
    weights = [np.asarray(step.state.weights.last) for step in steps]
    moved = [t for t in range(1, COUNT) if not np.array_equal(weights[t], weights[t - 1])]
    assert moved == list(range(EVERY, COUNT, EVERY))
    memory = steps[-1].state.memory
    kept = [(np.float64(step.reward) + 10) / 60 for step in steps[-1 - MEMORY : -1]]
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
    steps = neural_run("neural_ucb", False)[0]
    before, after, memory = steps[t - 1].state, steps[t].state, steps[t].state.memory
    (first, last), blocks = paper.exact(before.weights), []
    for x, arm in zip(np.asarray(memory.inputs, float), memory.arms, strict=True):
        blocks.append(paper.block(x, int(arm), 3))
    moments = optax.tree.get(before.optimizer, "mu"), optax.tree.get(before.optimizer, "nu")
    w, v = paper.dense(first), last
    (mw, mv), (sw, sv) = (
        (paper.dense(m.first), np.asarray(m.last)) for m in map(paper.exact, moments)
    )
    count, kept = int(optax.tree.get(before.optimizer, "count")), min(t, MEMORY)
    assert count == (t // EVERY - 1) * TRAIN_STEPS
    for level in levels_of(steps[t - 1].key):
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
plain_normals = jax.jit(partial(jax.random.normal), static_argnums=1)


def weights_after(twin: paper.RecurrentLinear, step: Step, leaves: list, reward: float) -> list:
    """By one step of RMSprop, with the gradient by finite differences."""
    slopes = paper.numerical_gradient(partial(twin.loss, arm=step.arm, reward=reward), leaves)
    squares = jax.tree.leaves(optax.tree.get(step.state.optimizer, "nu"))
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
    expected: list[np.ndarray] = []
    name = f"recurrent_linear({RECURRENT}{settings})"
    for step in islice(play(name, spec, rewards, masks, contexts), 302):
        leaves = [np.array(leaf, float) for leaf in jax.tree.leaves(step.state.network)]
        if step.t - 1 in CHECKED:
            for mine, theirs in zip(leaves, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, atol=0.02 * RATE)
            mean, covariance = step.state.posterior
            np.testing.assert_allclose(mean, twin.mean, atol=2e-3)
            limit = 1e-3 * model[1]
            np.testing.assert_allclose(model[2] * np.asarray(covariance), twin.cov, atol=limit)
        mean, deviation = twin.look(leaves, contexts[step.t].astype(float))
        scores = mean + deviation * np.asarray(plain_normals(step.key, (spec.num_arms,)))
        scores = np.where(masks[step.t], scores, -np.inf)
        assert scores[step.arm] > scores.max() - 1e-3, f"step {step.t}"
        reward = (float(step.reward) - low) / (high - low)
        if step.t in CHECKED:
            expected = weights_after(twin, step, leaves, reward)
        twin.update(leaves, step.arm, reward)


def test_recurrent_linear_learns_a_late_reward_where_it_belongs() -> None:
    """A ticket brings its own history: what came after it changes nothing."""
    policy = build_policy(f"recurrent_linear({RECURRENT}discount=1.0)", WHEEL)
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)
    everything = np.ones(3, bool)
    state = policy.init(jax.random.key(0))
    early, state = act(jax.random.key(1), state, np.float32([0.3, -0.6]), everything)
    at_once = learn(state, early.ticket, 40.0)
    for t in range(WINDOW + 2):
        _, state = act(jax.random.key(t), state, np.float32([-0.5, 0.1 * t]), everything)
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
