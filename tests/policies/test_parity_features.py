"""Linear policies on the features of arms against a regression on everything that was seen.

Arms sleep, leave and are followed by others, and rewards come late: in another order, and some
after their arm has left.
"""

import jax
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, Observation, build_policy
from tests.policies.transcriptions.features import Hybrid, best_of_normals

STEPS, STAYS = 150, 40  # of an arm in its place
SPEC = BanditSpec(4, 2, STEPS, (-1.0, 2.0), noise=0.3, arm_dim=3, arms_change=True)
UCB = {
    "lin_ucb": {},
    "lin_ucb(deviation=0, alpha=0.5)": {"deviation": 0, "alpha": 0.5},
    "lin_ucb(deviation=1.5, precision=2, delta=0.05)": {
        "deviation": 1.5,
        "ridge": 2,
        "delta": 0.05,
    },
    "d_lin_ucb(discount=0.95)": {"discount": 0.95, "squared": True},
    "d_lin_ucb(discount=0.97, deviation=0)": {"discount": 0.97, "deviation": 0, "squared": True},
    "sw_lin_ucb(window=30, deviation=0)": {"window": 30, "deviation": 0},
}
TS = {
    "lin_ts": {},
    "lin_ts(deviation=0, variance=0.1)": {"deviation": 0, "variance": 0.1},
    "d_lin_ts(discount=0.95, deviation=0.5)": {"discount": 0.95, "deviation": 0.5},
}


def observations(rng, changes=True):
    """Contexts, masks, features and numbers of arms, for every step."""
    features = rng.normal(size=(1000, SPEC.arm_dim)).astype(np.float32)
    for t in range(STEPS):
        turns = (t + 10 * np.arange(4)) // STAYS if changes else np.zeros(4, int)
        ids = (10 * turns + np.arange(4)).astype(np.int32)
        mask = rng.random(4) < 0.8
        mask[rng.integers(4)] = True
        yield Observation(rng.normal(size=2).astype(np.float32), mask, features[ids], ids)


def play(name, twin, check, *, late, changes=True):
    """Calls `check` at each decision; what is due is learned by the policy and its twin."""
    policy, rng = build_policy(name, SPEC), np.random.default_rng(7)
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)
    state, waiting, dropped = policy.init(jax.random.key(0)), [], 0
    for t, seen in enumerate(observations(rng, changes)):
        decision, state = act(jax.random.key(t), state, seen)
        rows = twin.rows_of(seen.context, seen.arms, seen.arm_ids.tolist())
        check(t, seen, rows, decision)
        arm = int(decision.arm)
        reward = np.float32(0.3 * seen.context[0] * seen.arms[arm, 0] + 0.3 * rng.normal())
        due = t + (int(rng.integers(30)) if late else 0)
        waiting.append((due, decision.ticket, rows[arm], seen.arm_ids[arm], arm, reward))
        for item in [item for item in waiting if item[0] <= t]:
            waiting.remove(item)
            _, ticket, z, arm_id, place, reward = item
            state = learn(state, ticket, reward)
            if seen.arm_ids[place] == arm_id:
                twin.update(z, float(reward))
            else:
                dropped += 1
    return dropped


def ids():
    return [10 * turn + place for turn in range(8) for place in range(4)]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", UCB)
def test_ucb(name, late):
    settings = dict(UCB[name])
    alpha, delta, squared = (settings.pop(k, d) for k, d in
                             (("alpha", 1), ("delta", None), ("squared", False)))  # fmt: skip
    ridge, low = settings.get("ridge", 1), SPEC.reward_range[0]
    twin = Hybrid(SPEC, ids(), **settings)
    update, clear = twin.update, []
    twin.update = lambda z, reward: update(z, reward - low)

    def check(t, seen, rows, decision):
        mean, deviation = twin.predict(rows, squared)
        radius = 3.0
        if delta:
            dim = 4 * 3 + 4 * 3
            inside = 2 * np.log(1 / delta) + dim * np.log(1 + len(twin.rows) / (ridge * dim))
            radius = np.sqrt(ridge) * 3.0 + 0.3 * np.sqrt(inside)
        index = np.where(seen.available, mean + alpha * radius * deviation, -np.inf)
        close = index > index.max() - 3e-3
        assert not np.asarray(decision.probabilities)[~close].any(), f"step {t}"
        clear.append(close.sum() == 1)

    changes = is_exact(settings)
    dropped = play(name, twin, check, late=late, changes=changes)
    assert np.mean(clear) > 0.9
    assert (dropped > 5) == (late and changes)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", TS)
def test_ts(name, late):
    settings = dict(TS[name])
    variance = settings.pop("variance", 1.0)
    twin = Hybrid(SPEC, ids(), **settings)

    def check(t, seen, rows, decision):
        if t % 10 == 0:
            mean, deviation = twin.predict(rows)
            expected = best_of_normals(mean, np.sqrt(variance) * deviation, seen.available)
            assert np.abs(expected - decision.probabilities).max() < 3e-3, f"step {t}"
        assert seen.available[int(decision.arm)]

    play(name, twin, check, late=late, changes=is_exact(settings))


def is_exact(settings):
    """Whether arms may leave: then, with a discount, what they leave behind is approximate.

    The twin's arms that have left still have their priors, which do not fade.
    """
    return "discount" not in settings or settings.get("deviation") == 0


def test_a_window_counts_what_is_within_it():
    """With deviations and without a change, as past rewards of arms that left are approximate."""
    twin = Hybrid(SPEC, ids(), window=30)
    update = twin.update
    twin.update = lambda z, reward: update(z, reward + 1.0)

    def check(t, seen, rows, decision):
        mean, deviation = twin.predict(rows)
        index = np.where(seen.available, mean + 3 * deviation, -np.inf)
        assert index[int(decision.arm)] > index.max() - 3e-3, f"step {t}"

    play("sw_lin_ucb(window=30)", twin, check, late=True, changes=False)


@pytest.mark.parametrize("name", ["lin_ucb", "lin_ts", "d_lin_ucb", "d_lin_ts", "sw_lin_ucb"])
def test_without_deviation_features_are_ignored(name):
    spec = SPEC._replace(arms_change=False)
    policy = build_policy(f"{name}(deviation=None)", spec)
    usual = build_policy(name, spec._replace(arm_dim=0))
    key, (seen, *_) = jax.random.key(1), observations(np.random.default_rng(0))
    ours, _ = policy.act(key, policy.init(key), seen)
    other, _ = usual.act(key, usual.init(key), Observation(seen.context, seen.available))
    np.testing.assert_array_equal(ours.probabilities, other.probabilities)


def test_a_negative_deviation_is_refused():
    with pytest.raises(InputError, match="deviation must be"):
        build_policy("lin_ucb(deviation=-1)", SPEC)
