"""Linear policies on the features of arms against a regression on everything that was seen.

Arms sleep, leave and are followed by others, and rewards come late: in another order, and some
after their arm has left.
"""

from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import Agent, BanditSpec, InputError, Observation, build_policy
from driftbandits.numerics import hybrid_window
from driftbandits.numerics.hybrid import features_of
from driftbandits.numerics.hybrid_policy import HybridTicket
from driftbandits.numerics.scores import best_score_probabilities
from driftbandits.policies import built
from tests.policies.transcriptions.features import Hybrid, Marginal, best_of_normals

STEPS, STAYS = 150, 40  # of an arm in its place
AHEAD = np.array([0, 10, 10, 30])  # steps of each place: two arms leave at once
SPEC = BanditSpec(4, 2, STEPS, (-1.0, 2.0), noise=0.3, arm_dim=3, arms_change=True)
BIG = BanditSpec(5, 1, arm_dim=2)
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
    "d_lin_ucb(discount=0.95, deviation=1, delta=0.05)": {
        "discount": 0.95,
        "deviation": 1,
        "delta": 0.05,
        "squared": True,
    },
    "sw_lin_ucb(window=30)": {"window": 30},
    "sw_lin_ucb(window=30, deviation=0)": {"window": 30, "deviation": 0},
}
TS = {
    "lin_ts": {},
    "lin_ts(deviation=0, variance=0.1)": {"deviation": 0, "variance": 0.1},
    "d_lin_ts(discount=0.95, deviation=0.5)": {"discount": 0.95, "deviation": 0.5},
}
LARGE_SPEC = BanditSpec(6, 2, arm_dim=2)
LARGE = {  # ends of two context numbers and of two features
    "50 to 100": ([50, 50], [100, 100], [50, 50], [100, 100]),
    "age, basket, price, length": ([18, 0], [80, 100], [5, 1], [100, 100]),
    "nearly constant": ([99.8, 99.8], [100, 100], [-100, 99.8], [-99.8, 100]),
}
CHANCES = jax.jit(best_score_probabilities)
FIVE = {
    "lin_ucb": {},
    "lin_ts": {},
    "d_lin_ucb(discount=0.95)": {"discount": 0.95},
    "d_lin_ts(discount=0.95)": {"discount": 0.95},
    "sw_lin_ucb(window=30)": {"window": 30},
}


def observations(rng):
    """Contexts, masks, features and numbers of arms, for every step."""
    features = rng.normal(size=(1000, SPEC.arm_dim)).astype(np.float32)
    for t in range(STEPS):
        turns = (t + AHEAD) // STAYS
        ids = (10 * turns + np.arange(4)).astype(np.int32)
        mask = rng.random(4) < 0.8
        mask[rng.integers(4)] = True
        yield Observation(rng.normal(size=2).astype(np.float32), mask, features[ids], ids)


def play(policy, twin, check, *, late):
    """Calls `check` at each decision; what is due is learned by the policy and its twin.

    Returns how many rewards came after their arms had left.
    """
    act, learn, rng = jax.jit(policy.act), jax.jit(policy.learn), np.random.default_rng(7)
    state, waiting, dropped, known = policy.init(jax.random.key(0)), [], 0, [0, 1, 2, 3]
    for t, seen in enumerate(observations(rng)):
        for old, new in zip(known, seen.arm_ids.tolist(), strict=True):
            if old != new:
                twin.replace(old, new)
        known = seen.arm_ids.tolist()
        decision, state = act(jax.random.key(t), state, seen)
        rows = twin.rows_of(seen.context, seen.arms, known)
        check(t, seen, rows, decision)
        arm = int(decision.arm)
        reward = np.float32(0.3 * seen.context[0] * seen.arms[arm, 0] + 0.3 * rng.normal())
        due = t + (int(rng.integers(30)) if late else 0)
        waiting.append((due, decision.ticket, rows[arm], seen.arm_ids[arm], arm, reward))
        for item in [item for item in waiting if item[0] <= t]:
            waiting.remove(item)
            _, ticket, z, arm_id, place, reward = item
            before, state = state, learn(state, ticket, reward)
            if seen.arm_ids[place] == arm_id:
                twin.update(z, float(reward))
            else:
                dropped += 1
                jax.tree.map(np.testing.assert_array_equal, state, before)
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
            weight = np.sum(twin.discount ** (2 * np.arange(len(twin.rows))))
            inside = 2 * np.log(1 / delta) + dim * np.log(1 + weight / (ridge * dim))
            radius = np.sqrt(ridge) * 3.0 + 0.3 * np.sqrt(inside)
        index = np.where(seen.available, mean + alpha * radius * deviation, -np.inf)
        close = index > index.max() - 3e-3
        assert not np.asarray(decision.probabilities)[~close].any(), f"step {t}"
        clear.append(close.sum() == 1)

    dropped = play(build_policy(name, SPEC), twin, check, late=late)
    assert np.mean(clear) > 0.9
    assert (dropped > 5) == late


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

    play(build_policy(name, SPEC), twin, check, late=late)


def showing(make):
    """`optimistic` or `sampled`, with means and deviations below the probabilities."""

    def make_showing(*settings):
        choose = make(*settings)

        def choose_showing(key, mean, deviation, weight, available):
            arm, probabilities = choose(key, mean, deviation, weight, available)
            return arm, jnp.stack([probabilities, mean, deviation])

        return choose_showing

    return make_showing


def shown_policy(monkeypatch, name, settings):
    """A policy that shows means and deviations, and is not stored for other tests."""
    module = import_module(f"driftbandits.policies.{name}")
    make = "sampled" if "ts" in name else "optimistic"
    monkeypatch.setattr(module, make, showing(getattr(module, make)))
    text = ", ".join(f"{key}={value}" for key, value in settings.items())
    return built.__wrapped__(f"{name}({text})", SPEC, 0)


def assert_shown(shown, mean, deviation, step):
    np.testing.assert_allclose(shown[1], mean, rtol=1e-5, atol=1e-5, err_msg=f"step {step}")
    np.testing.assert_allclose(shown[2], deviation, rtol=1e-5, err_msg=f"step {step}")


@pytest.mark.parametrize("twins", [Hybrid, Marginal])
@pytest.mark.parametrize(("deviation", "precision"), [(0.1, 1), (1, 0.2)])
@pytest.mark.parametrize("name", ["d_lin_ucb", "d_lin_ts"])
def test_what_an_arm_leaves_behind_fades(monkeypatch, name, deviation, precision, twins):
    settings = {"discount": 0.95, "deviation": deviation}
    policy = shown_policy(monkeypatch, name, settings | {"precision": precision})
    places = [0, 1, 2, 3] if twins is Marginal else ids()
    twin = twins(SPEC, places, ridge=precision, **settings)
    update, low, is_ts = twin.update, SPEC.reward_range[0], "ts" in name
    if not is_ts:
        twin.update = lambda z, reward: update(z, reward - low)

    def check(t, seen, rows, decision):
        mean, spread = twin.predict(rows, squared=not is_ts)
        # What a sampled score is about counts from the middle of the range.
        middle = sum(SPEC.reward_range) / 2 if is_ts else 0.0
        assert_shown(decision.probabilities, mean - middle, spread, t)
        if is_ts:
            expected = best_of_normals(mean, spread, seen.available)
            assert np.abs(expected - decision.probabilities[0]).max() < 3e-3, f"step {t}"

    assert play(policy, twin, check, late=True) > 5


@pytest.mark.parametrize("resum_every", [500, 20])
@pytest.mark.parametrize("deviation", [0.1, 1])
def test_in_a_window_arms_that_left_do_not_deviate(monkeypatch, deviation, resum_every):
    monkeypatch.setattr(hybrid_window, "RESUM_EVERY", resum_every)
    settings = {"window": 30, "deviation": deviation}
    policy = shown_policy(monkeypatch, "sw_lin_ucb", settings)
    twin = Hybrid(SPEC, ids(), **settings)
    update, low = twin.update, SPEC.reward_range[0]
    twin.update = lambda z, reward: update(z, reward - low)

    def check(t, seen, rows, decision):
        assert_shown(decision.probabilities, *twin.predict(rows), t)

    assert play(policy, twin, check, late=True) > 5


@pytest.mark.parametrize("discount", [1.0, 0.999])
def test_large_rewards_lose_no_digits(discount):
    """Rewards of 1000 whose noise is 1: the sums are float32, those of the twin float64."""
    spec = SPEC._replace(reward_range=(900.0, 1100.0), arms_change=False)
    name = "lin_ts(" if discount == 1 else f"d_lin_ts({discount=}, "
    policy = build_policy(f"{name}precision=0.01)", spec)
    twin = Hybrid(spec, [0, 1, 2, 3], discount=discount, ridge=0.01)
    rng, learn = np.random.default_rng(2), jax.jit(policy.learn)
    features, state = rng.normal(size=(4, 3)).astype(np.float32), policy.init(jax.random.key(0))
    for t in range(2000):
        context, arm = rng.normal(size=2).astype(np.float32), t % 4
        seen = Observation(context, np.ones(4, bool), features)
        ticket = HybridTicket(features_of(seen, spec)[arm], np.int32(arm))
        reward = np.float32(1000 + rng.normal())
        state = learn(state, ticket, reward)
        twin.update(twin.rows_of(context, features, twin.ids)[arm], float(reward))
    mean, deviation = twin.predict(twin.rows_of(np.zeros(2), features, twin.ids))
    expected = best_of_normals(mean, deviation, seen.available)
    seen = seen._replace(context=np.zeros(2, np.float32))
    decision, _ = policy.act(jax.random.key(1), state, seen)
    assert expected.max() < 0.9
    np.testing.assert_allclose(decision.probabilities, expected, atol=0.03)


def large_numbers(rng, ends, runs=2, steps=60):
    """Observations, arms to pull and rewards of some runs."""
    low, high, arms_low, arms_high = np.array(ends, np.float32)
    contexts = rng.uniform(low, high, (runs, steps, 2)).astype(np.float32)
    features = rng.uniform(arms_low, arms_high, (runs, 1, 6, 2)).astype(np.float32)
    seen = Observation(contexts, np.ones((runs, steps, 6), bool), features.repeat(steps, axis=1))
    arms = rng.integers(6, size=(runs, steps)).astype(np.int32)
    return seen, arms, rng.integers(2, size=(runs, steps)).astype(np.float32)


def probabilities_of(name, given):
    """Those before each reward, in runs that are vectorised as those of a simulation."""
    policy = build_policy(name, LARGE_SPEC)

    def step(state, now):
        seen, arm, reward = now
        decision, state = policy.act(jax.random.key(0), state, seen)
        ticket = HybridTicket(features_of(seen, LARGE_SPEC)[arm], arm)
        return policy.learn(state, ticket, reward), decision.probabilities

    def run(given):
        return jax.lax.scan(step, policy.init(jax.random.key(0)), given)[1]

    return np.asarray(jax.jit(jax.vmap(run))(given))


def agrees(name, found, mean, deviation):
    """Whether the probabilities are those of the index or of the sampled scores."""
    if "ts" in name:
        # The twin's grid would be too coarse for deviations of 1 beside those of 1000.
        expected = CHANCES(*np.float32([mean, deviation]), np.ones(6, bool))
        return np.abs(expected - found).max() < 1e-4
    index = mean + deviation
    return index[found > 0].min() > index.max() - 1e-5 * max(1, index.max())


@pytest.mark.parametrize("ends", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("name", FIVE)
def test_large_numbers_lose_no_digits(name, ends):
    """At the ends of the ranges of an agent, where products reach 1e4 and sums 1e10."""
    seen, arms, rewards = given = large_numbers(np.random.default_rng(3), ends)
    for run, found in enumerate(probabilities_of(name, given)):
        twin = Hybrid(LARGE_SPEC, list(range(6)), **FIVE[name])
        for t, arm in enumerate(arms[run]):
            rows = twin.rows_of(seen.context[run, t], seen.arms[run, t], twin.ids)
            predicted = twin.predict(rows, squared="d_lin_ucb" in name)
            assert agrees(name, found[t], *predicted), f"run {run}, step {t}"
            twin.update(rows[arm], float(rewards[run, t]))


@pytest.mark.parametrize("name", FIVE)
def test_no_reward_is_refused_at_the_ends_of_the_ranges(name):
    near = {f"arm{i}": [-100.0, 100.0, 99.9 + 0.01 * i] for i in range(6)}
    agent = Agent(near, context=["x", "y"], policy=name, features=["f", "g", "h"], seed=1)
    for sign in (1, -1, 1, 1):
        decision = agent.decide([sign * 100.0, -sign * 99.9])
        assert agent.reward(decision.id, 1.0)


def stored(rewards, window):
    """The state of `sw_lin_ucb` after some rewards, and what it has learned from."""
    policy, rng = build_policy(f"sw_lin_ucb({window=})", BIG), np.random.default_rng(4)
    rows = rng.normal(size=(rewards, 6)).astype(np.float32)
    arms, paid = rng.integers(BIG.num_arms, size=rewards), rng.random(rewards).astype(np.float32)

    def step(state, now):
        row, arm, reward = now
        return policy.learn(state, HybridTicket(row, arm), reward), None

    scan = jax.jit(lambda state, given: jax.lax.scan(step, state, given)[0])
    return scan(policy.init(jax.random.key(0)), (rows, arms.astype(np.int32), paid)), rows, arms


@pytest.mark.parametrize(("rewards", "window"), [(500, 600), (1000, 300), (500, 256)])
def test_a_window_summed_again_in_blocks_is_whole(rewards, window):
    state, rows, arms = stored(rewards, window)
    kept, own = rows[-window:].astype(float), arms[-window:]
    np.testing.assert_allclose(state.sums.high.shared, kept.T @ kept, atol=1e-3)
    for arm in range(BIG.num_arms):
        x = kept[own == arm]
        np.testing.assert_allclose(state.sums.high.cross[arm], x[:, :2].T @ x, atol=1e-3)


def test_summing_a_window_again_takes_little_memory():
    """A row for each reward of the window and each arm would be 16 MB."""
    policy = build_policy("sw_lin_ucb(window=20_000)", BIG._replace(num_arms=100))
    state = jax.eval_shape(policy.init, jax.random.key(0))
    ticket = HybridTicket(np.zeros(6, np.float32), np.int32(0))
    compiled = jax.jit(policy.learn, donate_argnums=0).lower(state, ticket, np.float32(0)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4e6


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
