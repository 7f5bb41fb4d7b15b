"""Where an arm takes another one's place, nothing is left of the old one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import (
    POLICIES,
    BanditSpec,
    InputError,
    Observation,
    build_policy,
    simulate,
)
from driftbandits.numerics.new_arms import arm_axes

ARMS = 4
KEY = jax.random.key(0)
NAMES = [name for name in POLICIES if name != "oracle"]
SMALL = {
    "recurrent": "recurrent(hidden=8)",
    "recurrent_linear": "recurrent_linear(hidden=4, window=4)",
    "neural_linear": "neural_linear(hidden=4, memory=40)",
    "neural_ucb": "neural_ucb(hidden=4, memory=40)",
    "neural_ts": "neural_ts(hidden=4, memory=40)",
}


def played(name, rewards, ids):
    """Probabilities at each step; an arm that is new from a step on has another number."""
    spec = BanditSpec(ARMS, 2, len(rewards), arms_change=True)
    policy = build_policy(SMALL.get(name, name), spec)

    @jax.jit
    def play(rewards, ids):
        def step(state, now):
            key, payoffs, own = now
            seen = Observation(jnp.array([0.3, -0.2]), jnp.ones(ARMS, bool), None, own)
            decision, state = policy.act(key, state, seen)
            state = policy.learn(state, decision.ticket, payoffs[decision.arm])
            return state, (decision.arm, decision.probabilities)

        keys = jax.random.split(jax.random.key(0), len(rewards))
        return jax.lax.scan(step, policy.init(jax.random.key(1)), (keys, rewards, ids))

    return jax.tree.map(np.asarray, play(np.float32(rewards), np.int32(ids)))


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_plays_on_where_arms_change(name):
    steps, rng = 120, np.random.default_rng(3)
    ids = (np.arange(steps)[:, None] + 7 * np.arange(ARMS)) // 30
    state, (arms, probabilities) = played(name, rng.random((steps, ARMS)), ids)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-3)
    assert set(arms) <= set(range(ARMS))
    for leaf in jax.tree.leaves(state.inner):
        assert np.isfinite(leaf).all() or leaf.dtype.kind != "f"
    for path, leaf in jax.tree_util.tree_leaves_with_path(state.inner):
        if jax.tree_util.keystr(path).endswith("pulls"):
            assert leaf.min() >= 0, "pulls of an arm that left were counted off its successor"


@pytest.mark.parametrize("name", ["ucb", "tracker", "thompson", "sw_ucb", "d_ucb", "lin_ucb"])
def test_a_good_arm_in_a_bad_one_s_place_is_found(name):
    """The worst arm leaves; what follows it is the best."""
    steps = 1500
    rewards = np.tile([0.5, 0.4, 0.3, 0.0], (steps, 1))
    rewards[steps // 2 :, 3] = 1.0
    ids = np.zeros((steps, ARMS))
    ids[steps // 2 :, 3] = 1
    _, (arms, _) = played(name, rewards, ids)
    soon = arms[steps // 2 : steps // 2 + 60]
    assert (soon == 3).mean() > 0.3
    assert (arms[-300:] == 3).mean() > 0.6


@pytest.mark.parametrize("name", ["neural_linear", "neural_ucb", "neural_ts"])
def test_a_memory_of_past_rewards_does_not_teach_the_successor(name):
    ids = np.zeros((40, ARMS))
    ids[20:, 1] = 1
    state, (arms, _) = played(name, np.random.default_rng(0).random((40, ARMS)), ids)
    before = arms[:20] == 1
    assert before.any()
    np.testing.assert_array_equal(state.inner.memory.arms[:20][before], ARMS)
    np.testing.assert_array_equal(state.inner.memory.arms[:20][~before], arms[:20][~before])
    np.testing.assert_array_equal(state.inner.memory.arms[20:40], arms[20:])


@pytest.mark.parametrize("name", ["exp3", "exp3_s", "rexp3"])
def test_the_successor_of_the_leader_has_a_usual_weight(name):
    ids = np.zeros((601, ARMS))
    ids[600, 0] = 1
    _, (_, probabilities) = played(name, np.tile([1.0, 0, 0, 0], (601, 1)), ids)
    before, after = probabilities[599], probabilities[600]
    if name != "rexp3":  # which forgets everything now and then
        assert before[0] > 0.5
    np.testing.assert_allclose(after, 1 / ARMS, atol=0.1)


def test_a_new_arm_of_the_tracker_starts_at_the_mean_of_all_rewards():
    spec = BanditSpec(ARMS, reward_range=(0.0, 10.0), arms_change=True)
    policy, key = build_policy("tracker", spec), jax.random.key(0)
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)
    seen = Observation(np.zeros(0, np.float32), np.ones(ARMS, bool), None, np.zeros(ARMS, np.int32))
    state = policy.init(key)
    for t in range(60):
        decision, state = act(jax.random.fold_in(key, t), state, seen)
        state = learn(state, decision.ticket, np.float32(10 if t else 0))
    _, state = act(key, state, seen._replace(arm_ids=np.int32([0, 0, 7, 0])))
    levels = state.inner.tracks[0].bank.mean[:, 2, -1]
    np.testing.assert_allclose(levels, state.inner.seen.mean)
    assert state.inner.seen.mean > 9


def test_two_successors_do_not_start_with_the_same_weights():
    """Nor does the same one in another run: its weights come from the key of the decision."""
    policy, key = build_policy(SMALL["neural_linear"], BanditSpec(2, 2, arms_change=True)), KEY
    act = jax.jit(policy.act)
    seen = Observation(np.zeros(2, np.float32), np.ones(2, bool), None, np.int32([0, 0]))
    start, found = policy.init(key), []
    for moment, ids in (1, [0, 1]), (1, [0, 2]), (2, [0, 3]):
        _, state = act(jax.random.fold_in(key, moment), start, seen._replace(arm_ids=np.int32(ids)))
        weights = np.asarray(state.inner.fit.network[-1].weights)
        np.testing.assert_array_equal(weights[0], start.inner.fit.network[-1].weights[0])
        found.append(weights[1])
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.isclose(found[1], found[2]).any()


def test_a_streak_ends_with_its_arm():
    policy = build_policy("tracker", BanditSpec(2, arms_change=True))
    key, only = jax.random.key(0), jnp.array([True, False])
    seen = Observation(jnp.zeros(0), only, None, jnp.zeros(2, jnp.int32))
    state = policy.init(key)
    for ids, length in ([0, 0], 1), ([0, 0], 2), ([0, 1], 3), ([1, 1], 1):
        _, state = policy.act(key, state, seen._replace(arm_ids=jnp.array(ids)))
        assert int(state.inner.streaks.length) == length


def test_a_late_reward_of_an_arm_that_left_is_not_its_successor_s():
    policy = build_policy("ucb", BanditSpec(2, arms_change=True))
    everyone, key = jnp.ones(2, bool), jax.random.key(0)
    before = Observation(jnp.zeros(0), everyone, None, jnp.array([5, 6]))
    after = before._replace(arm_ids=jnp.array([7, 8]))
    decision, state = policy.act(key, policy.init(key), before)
    _, state = policy.act(key, state, after)
    late = policy.learn(state, decision.ticket, jnp.float32(1))
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(late), strict=True):
        np.testing.assert_array_equal(old, new)
    learned = policy.learn(*reversed_pair(policy.act(key, state, after)), jnp.float32(1))
    assert int(learned.inner.pulls.sum()) == 1


def reversed_pair(made):
    decision, state = made
    return state, decision.ticket


@pytest.mark.parametrize(
    ("own", "wider", "axes"),
    [
        ((4,), (5,), [(0, 0)]),
        ((18,), (19,), []),  # a window that happens to grow by one
        ((3, 4, 4), (3, 5, 5), [(1, 0), (2, 0)]),
        ((8, 7), (8, 8), [(1, 2)]),  # context of two, four arms, the last reward
        ((40,), (50,), []),
        ((4, 2), (4, 2), []),
        ((), (), []),
    ],
)
def test_axes_of_arms_are_told_by_their_lengths(own, wider, axes):
    assert arm_axes(own, wider, BanditSpec(4, 2)) == axes


def test_features_are_worth_something_where_articles_come_and_go():
    size = {"horizon": 3000, "runs": 8, "record_every": 100}
    with_features = simulate("lin_ucb", "articles", **size).regret[:, -1]
    without = simulate("lin_ucb(deviation=None)", "articles", **size).regret[:, -1]
    assert (without - with_features).mean() > 3 * (without - with_features).std() / np.sqrt(8)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (BanditSpec(3, arms_change=True), r"arm_ids of an observation must be of shape \(3,\)"),
        (BanditSpec(3, arm_dim=2), r"arms of an observation must be of shape \(3, 2\)"),
    ],
)
def test_what_an_environment_forgets_to_show_is_named(spec, message):
    policy, key = build_policy("lin_ucb", spec), jax.random.key(0)
    with pytest.raises(InputError, match=message):
        policy.act(key, policy.init(key), Observation(jnp.zeros(0), jnp.ones(3, bool)))
