"""Where an arm takes another one's place, nothing is left of the old one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import POLICIES, BanditSpec, Observation, build_policy, simulate
from driftbandits.numerics.new_arms import arm_axes

ARMS = 4
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
        ((3, 4, 4), (3, 5, 5), [(1, 0), (2, 0)]),
        ((8, 7), (8, 8), [(1, 2)]),  # context of two, four arms, the last reward
        ((40,), (50,), []),
        ((4, 2), (4, 2), []),
        ((), (), []),
    ],
)
def test_axes_of_arms_are_told_by_their_lengths(own, wider, axes):
    assert arm_axes(own, wider, 4) == axes


def test_features_are_worth_something_where_articles_come_and_go():
    size = {"horizon": 3000, "runs": 8, "record_every": 100}
    with_features = simulate("lin_ucb", "articles", **size).regret[:, -1]
    without = simulate("lin_ucb(deviation=None)", "articles", **size).regret[:, -1]
    assert (without - with_features).mean() > 3 * (without - with_features).std() / np.sqrt(8)
