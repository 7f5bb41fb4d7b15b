"""NeuralUCB and NeuralTS on features of arms against a twin that learns from the same rewards.

Arms sleep, leave and are followed by others, and rewards come late: in another order, and some
after their arm has left.
"""

import jax
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, Observation, build_policy, simulate
from tests.policies.transcriptions.features import best_of_normals
from tests.policies.transcriptions.neural_features import NeuralOnFeatures

STEPS, STAYS = 150, 40  # of an arm in its place
SPEC = BanditSpec(4, 2, reward_range=(-1.0, 2.0), arm_dim=3, arms_change=True)
EVERY, TRAIN_STEPS, BATCH, MEMORY = 20, 3, 8, 50
SMALL = (
    f"hidden=12, batch={BATCH}, train_every={EVERY}, train_steps={TRAIN_STEPS}, memory={MEMORY}, "
    "learning_rate=0.02, precision=0.01, variance=2.0"
)
WORTH = "hidden=16, batch=32"  # of features: small, and quick


def observations(rng, changes):
    """Contexts, masks, features and numbers of arms, for every step."""
    features = rng.normal(size=(100, SPEC.arm_dim)).astype(np.float32)
    for t in range(STEPS):
        turns = (t + 10 * np.arange(4)) // STAYS if changes else np.zeros(4, int)
        ids = (10 * turns + np.arange(4)).astype(np.int32)
        mask = rng.random(4) < 0.8
        mask[rng.integers(4)] = True
        yield Observation(rng.normal(size=2).astype(np.float32), mask, features[ids], ids)


@jax.jit
def levels_of(key):
    """The uniform numbers of the minibatches of the decision made with this key."""
    own_key = jax.random.split(key)[0]  # the other half is for arms that are new
    train_key = jax.random.split(own_key)[1]
    each = [jax.random.fold_in(train_key, i) for i in range(TRAIN_STEPS)]
    return [jax.random.uniform(key, (BATCH,)) for key in each]


def play(name, deviation, check, *, late, changes):
    """Calls `check` at each decision. Returns how many rewards came after their arms had left."""
    policy = build_policy(f"{name}({SMALL}, {deviation=})", SPEC)
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)
    state, rng = policy.init(jax.random.key(0)), np.random.default_rng(7)
    twin = NeuralOnFeatures(
        SPEC, state.inner.weights, ridge=0.01, nu=2, deviation=deviation, memory=MEMORY, rate=0.02
    )
    waiting, dropped, ids = [], 0, None
    for t, seen in enumerate(observations(rng, changes)):
        for arm in np.flatnonzero(seen.arm_ids != ids) if t else ():
            twin.replace(arm)
        ids, key = seen.arm_ids, jax.random.key(t)
        decision, state = act(key, state, seen)
        rows, arm = twin.rows_of(seen.context, seen.arms), int(decision.arm)
        check(t, seen, twin.predict(rows), decision)
        twin.pull(rows[arm])
        reward = np.float32(0.3 * seen.context[0] * seen.arms[arm, 0] + 0.3 * rng.normal())
        due = t + (int(rng.integers(30)) if late else 0)
        waiting.append((due, key, decision.ticket, rows[arm], ids[arm], arm, reward))
        for item in [item for item in waiting if item[0] <= t]:
            waiting.remove(item)
            _, key, ticket, row, arm_id, place, reward = item
            state = learn(state, ticket, reward)
            if ids[place] != arm_id:
                dropped += 1
                continue
            twin.update(row, float(reward))
            if len(twin.past) % EVERY == 0:
                twin.train(np.asarray(levels_of(key)))
    assert twin.steps >= 4 * TRAIN_STEPS
    return dropped


@pytest.mark.parametrize("deviation", [0.1, 1.5, 0])
@pytest.mark.parametrize(("late", "changes"), [(False, False), (True, True)])
def test_ucb(deviation, late, changes):
    clear = []

    def check(t, seen, found, decision):
        mean, width = found
        index = np.where(seen.available, mean + width, -np.inf)
        close = index > index.max() - 1e-3
        assert not np.asarray(decision.probabilities)[~close].any(), f"step {t}"
        clear.append(close.sum() == 1)

    dropped = play("neural_ucb", deviation, check, late=late, changes=changes)
    assert np.mean(clear) > 0.9
    assert (dropped > 5) == changes


@pytest.mark.parametrize("deviation", [0.1, 0])
def test_ts(deviation):
    def check(t, seen, found, decision):
        assert seen.available[int(decision.arm)]
        if t % 10 == 0:
            expected = best_of_normals(*found, seen.available)
            assert np.abs(expected - decision.probabilities).max() < 3e-3, f"step {t}"

    assert play("neural_ts", deviation, check, late=True, changes=True) > 5


@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_a_late_reward_is_learned_with_the_features_of_its_decision(name):
    policy = build_policy(f"{name}({SMALL})", SPEC._replace(arms_change=False))
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)
    key, (early, later, *_) = jax.random.key(1), observations(np.random.default_rng(3), True)
    decision, state = act(key, policy.init(key), early)
    _, after = act(key, state, later._replace(arms=later.arms + 1))
    at_once, late = (learn(s, decision.ticket, np.float32(1)).memory for s in (state, after))
    x = np.append(early.context, 1)
    row = np.outer(np.append(1, early.arms[int(decision.arm)]), x).ravel()
    np.testing.assert_allclose(at_once.inputs[0], row, rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, at_once, late)


@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_features_are_worth_something(name):
    """More than three standard errors of the difference, run by run."""
    known, ignored = (
        simulate(f"{name}({WORTH}, {deviation=})", "shared_linear", horizon=300, runs=8).regret
        for deviation in (0.1, None)
    )
    gain = ignored[:, -1] - known[:, -1]
    assert gain.mean() > 3 * gain.std(ddof=1) / len(gain) ** 0.5


@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_without_deviation_features_are_ignored(name):
    spec = SPEC._replace(arms_change=False)
    policy = build_policy(f"{name}({SMALL}, deviation=None)", spec)
    usual = build_policy(f"{name}({SMALL})", spec._replace(arm_dim=0))
    key, (seen, *_) = jax.random.key(1), observations(np.random.default_rng(0), False)
    ours, _ = policy.act(key, policy.init(key), seen)
    other, _ = usual.act(key, usual.init(key), Observation(seen.context, seen.available))
    np.testing.assert_array_equal(ours.probabilities, other.probabilities)


def test_a_negative_deviation_is_refused():
    with pytest.raises(InputError, match="deviation must be"):
        build_policy("neural_ucb(deviation=-1)", SPEC)
