"""Environments whose arms have features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import TRANSFORMATIONS, InputError, build_environment, simulate
from driftbandits.environments.shared_linear import orthonormal, turned
from tests.environments.courses import course

KEY = jax.random.key(3)


@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (5, 2), (1, 3)])
def test_the_model_keeps_lengths(shape):
    theta = np.asarray(orthonormal(KEY, *shape))
    small = theta @ theta.T if shape[0] <= shape[1] else theta.T @ theta
    np.testing.assert_allclose(small, np.eye(min(shape)), atol=1e-5)


def test_contexts_turn_once_in_a_period():
    x = jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(turned(x, jnp.int32(0), 8), x)
    np.testing.assert_allclose(turned(x, jnp.int32(2), 8), [-2, 1, 3], atol=1e-6)
    np.testing.assert_allclose(turned(x, jnp.int32(8), 8), x)


@pytest.mark.parametrize("settings", ["", "(own=0.5)", "(period=40)", "(every=10)"])
def test_shared_means_follow_from_features(settings):
    environment = build_environment(f"shared_linear{settings}")
    state = environment.init(KEY)._replace(time=jnp.int32(10))
    seen = environment.observe(KEY, state)
    mean = np.asarray(environment.rewards(KEY, state, seen.context).mean)
    context = np.asarray(seen.context)
    if "period" in settings:
        context = np.asarray(turned(seen.context, state.time, 40))
    expected = np.asarray(seen.arms) @ (context @ np.asarray(state.theta))
    expected *= -1 if "every" in settings else 1
    expected += 0.5 * np.asarray(state.quality) if "own" in settings else 0
    np.testing.assert_allclose(mean, expected, atol=1e-5)
    assert np.abs(mean).max() <= environment.spec.reward_range[1]


def test_articles_come_and_go():
    environment = build_environment("articles(num_arms=5, life=50)")
    advance, observe = jax.jit(environment.advance), jax.jit(environment.observe)
    state, seen = environment.init(KEY), []
    for _ in range(200):
        seen.append(jax.tree.map(np.asarray, observe(KEY, state)))
        state = advance(state, jnp.int32(0))
    ids, arms, masks = (np.stack(x) for x in zip(*((s.arm_ids, s.arms, s.available) for s in seen),
                                                   strict=True))  # fmt: skip
    assert masks.any(axis=1).all()
    assert not masks.all()
    changes = ids[1:] != ids[:-1]
    assert changes.sum(axis=1).max() == 1, "one place at a time"
    assert changes.any(axis=0).all()
    np.testing.assert_array_equal(changes, (arms[1:] != arms[:-1]).any(axis=2))
    assert masks[1:][changes].all(), "a new article can be shown at once"
    assert not masks[:-1][changes].any(), "its place was empty before"


def test_the_quality_of_an_article_fades():
    environment = build_environment(
        "articles(num_arms=2, interest=0, quality=2, fading=5, life=100)"
    )
    state = environment.init(KEY)
    means = []
    for _ in range(60):
        means.append(np.asarray(environment.rewards(KEY, state, jnp.zeros(4)).mean))
        state = environment.advance(state, jnp.int32(0))
    logit = np.log(np.stack(means) / (1 - np.stack(means))) + 1
    np.testing.assert_allclose(logit[10:15, 0] / logit[5:10, 0], np.exp(-1), rtol=1e-2)
    assert np.abs(logit[0, 0]) > 0.05


def test_impossible_settings_are_refused():
    for text in (
        "articles(num_arms=1)",
        "articles(life=5)",
        "shared_linear(period=10, context_dim=1)",
    ):
        with pytest.raises(InputError):
            build_environment(text)


TRANSFORMED = {
    "max_consecutive": 3,
    "delayed": 5,
    "sleeping": 0.5,
    "noisy": 0.5,
    "heavy_tailed": 0.5,
    "scaled": [100, -50],
    "fatigue": 0.9,
}


@pytest.mark.parametrize("name", ["articles(num_arms=4, life=20", "shared_linear(num_arms=4"])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_transformations_hand_features_through(name, transformation):
    plain = f"{name})"
    changed = f"{name}, {transformation}={TRANSFORMED[transformation]})"
    spec, usual = build_environment(changed).spec, build_environment(plain).spec
    assert (spec.arm_dim, spec.arms_change) == (usual.arm_dim, usual.arms_change)
    seen, expected = course(changed, 60), course(plain, 60)
    np.testing.assert_array_equal(seen["arms"], expected["arms"])
    np.testing.assert_array_equal(seen["arm_ids"], expected["arm_ids"])
    assert not (seen["available"] & ~expected["available"]).any()
    trace = simulate("uniform", changed, horizon=60, runs=2)
    assert np.isfinite(trace.regret).all()
