"""What each environment beyond the paper's is: formulas, moments of change, what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import ENVIRONMENTS, BanditSpec, InputError, build_environment
from driftbandits.environments.random_walk import reflect
from driftbandits.numerics.random_keys import key_at
from tests.environments.courses import KEY, course, means_after

# Changes at moments


def test_abrupt_redraws_everything_at_the_given_steps() -> None:
    seen = course("abrupt(num_arms=4, times=[3, 4, 9])", 12)
    changed = np.flatnonzero((np.diff(seen["mean"], axis=0) != 0).all(axis=1)) + 1
    assert changed.tolist() == [3, 4, 9]
    assert (np.diff(seen["mean"], axis=0) != 0).any(axis=1).sum() == 3
    assert seen["era"].tolist() == [0] * 3 + [1] + [2] * 5 + [3] * 3


def test_abrupt_has_its_hazard_and_uniform_means() -> None:
    steps, hazard = 20_000, 0.05
    seen = course(f"abrupt(num_arms=3, hazard={hazard})", steps)
    moments = (np.diff(seen["mean"], axis=0) != 0).all(axis=1)
    assert moments.mean() == pytest.approx(hazard, abs=4 * (hazard / steps) ** 0.5)
    assert np.array_equal(np.diff(seen["era"]), moments)
    drawn = seen["mean"][1:][moments]
    assert np.abs(drawn.mean(axis=0) - 0.5).max() < 4 * (1 / 12 / len(drawn)) ** 0.5
    assert np.abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 4 / drawn.size**0.5
    lengths = np.diff(np.flatnonzero(moments))
    assert lengths.std() == pytest.approx(1 / hazard, rel=0.15), "geometric, without memory"
    other = course(f"abrupt(num_arms=3, hazard={hazard})", 200, seed=8)
    assert not np.array_equal(seen["mean"][:200], other["mean"])


def test_abrupt_without_hazard_is_bernoulli() -> None:
    assert (np.diff(course("abrupt(hazard=0)", 200)["mean"], axis=0) == 0).all()


def test_random_walk_steps_and_reflects() -> None:
    environment = build_environment("random_walk(num_arms=50, step=0.2)")
    state = environment.init(KEY)
    for time in range(1, 30):
        after = environment.advance(state, jnp.int32(0))
        moved = np.asarray(state.theta, float) + 0.2 * np.asarray(
            jax.random.normal(key_at(state.words, jnp.int32(time)), (50,)), float
        )
        moved = np.where(moved < 0, -moved, np.where(moved > 1, 2 - moved, moved))
        np.testing.assert_allclose(after.theta, moved, atol=1e-6)
        state = after
    assert (np.asarray(state.theta) >= 0).all()
    assert (np.asarray(state.theta) <= 1).all()


def test_random_walk_has_the_stated_deviation_and_stays_uniform() -> None:
    seen = course("random_walk(num_arms=200)", 500)["mean"]
    inside = (seen[:-1] > 0.05) & (seen[:-1] < 0.95)
    assert np.diff(seen, axis=0)[inside].std() == pytest.approx(0.01, rel=0.02)
    assert seen.mean() == pytest.approx(0.5, abs=4 * (1 / 12 / 200) ** 0.5)


def test_reflection_holds_for_any_length() -> None:
    far = reflect(jnp.array([-0.25, 1.25, -1.25, 2.5, 3.75, 0.0, 1.0]))
    np.testing.assert_allclose(far, [0.25, 0.75, 0.75, 0.5, 0.25, 0, 1], atol=1e-6)


def test_flipping_swaps_best_and_worst_and_back() -> None:
    seen = course("flipping(num_arms=5, every=10)", 40)
    theta = seen["mean"][0]
    flipped = theta.copy()
    flipped[[theta.argmax(), theta.argmin()]] = theta.min(), theta.max()
    for time in range(40):
        expected = flipped if (time // 10) % 2 else theta
        np.testing.assert_array_equal(seen["mean"][time], expected)
    assert seen["era"].tolist() == sorted([0, 1, 2, 3] * 10)


def test_era_of_the_sine_is_the_best_arm() -> None:
    seen = course("sinusoidal(num_arms=4, period=60)", 120)
    np.testing.assert_array_equal(seen["era"], seen["mean"].argmax(axis=1))
    assert len(set(seen["era"].tolist())) > 1


def test_who_has_eras() -> None:
    having = {name for name in ENVIRONMENTS if build_environment(name).era is not None}
    assert having == {
        *("abrupt", "flipping", "flipping_linear", "sinusoidal", "rotting"),
        *("trending", "seasonal", "shocks"),
    }
    assert build_environment('rotting(law="power")').era is None
    assert build_environment("bernoulli(max_consecutive=3, sleeping=0.5)").era is None


@pytest.mark.parametrize(
    "transformation",
    ["max_consecutive=2", "sleeping=0.5", "sleeping=[[1, 0], [1, 1]]", "noisy=1", "scaled=2"],
)
def test_transformations_keep_the_era(transformation: str) -> None:
    plain = course("flipping(num_arms=2, every=3)", 12)
    changed = course(f"flipping(num_arms=2, every=3, {transformation})", 12)
    np.testing.assert_array_equal(changed["era"], plain["era"])


# Changes by pulls


def test_default_rotting_is_the_paper_s_problem_bit_for_bit() -> None:
    environment = build_environment("rotting")
    for pulls, mean in (([9999, 7499], [0.5, 1.0]), ([0, 7500], [0.5, 0.4])):
        found = environment.rewards(KEY, jnp.array(pulls, jnp.int32), jnp.zeros(0))
        expected = jnp.array(mean) + 0.2**0.5 * jax.random.normal(KEY, (2,))
        np.testing.assert_array_equal(found.sampled, expected)
        np.testing.assert_array_equal(found.mean, jnp.array(mean))
    assert environment.spec == BanditSpec(2, noise=0.2**0.5)
    assert [int(environment.era(jnp.array([0, n]))) for n in (7499, 7500)] == [1, 0]


@pytest.mark.parametrize("law", ["step", "geometric", "power"])
def test_rotting_laws(law: str) -> None:
    environment = build_environment(f'rotting(num_arms=6, law="{law}", life=20, variance=0.01)')
    state = environment.init(KEY)
    start, end, life = (np.asarray(x, float) for x in (state.start, state.end, state.life))
    assert (end <= start).all()
    assert (life >= 1).all()
    assert (life <= 39).all()
    formulas = {
        "step": lambda n: np.where(n < life, start, end),
        "geometric": lambda n: start * np.exp(-1 / life) ** n,
        "power": lambda n: start / np.sqrt(1 + n / life),
    }
    for n in (0, 1, 5, int(life[2]) - 1, int(life[2]), 100):
        pulls = np.arange(6) + n
        found = means_after(environment, state._replace(pulls=jnp.asarray(pulls, jnp.int32)))
        np.testing.assert_allclose(found, formulas[law](pulls), rtol=1e-5)
    assert environment.spec.noise == pytest.approx(0.1)
    after = environment.advance(environment.advance(state, jnp.int32(4)), jnp.int32(4))
    assert after.pulls.tolist() == [0, 0, 0, 0, 2, 0]


def test_rotting_lives_are_drawn_around_their_mean_per_run() -> None:
    environment = build_environment("rotting(num_arms=2000, life=50)")
    lives = np.asarray(environment.init(KEY).life)
    assert lives.mean() == pytest.approx(50, abs=4 * 29 / 2000**0.5)
    assert {lives.min(), lives.max()} == {1, 99}
    assert not np.array_equal(lives, environment.init(jax.random.key(1)).life)


def test_era_of_a_step_is_the_best_arm() -> None:
    choice = "rotting(num_arms=8, life=5)"
    best = int(course(choice, 1)["era"][0])
    seen = course(choice, 12, arm=best)
    np.testing.assert_array_equal(seen["era"], seen["mean"].argmax(axis=1))
    assert len(set(seen["era"].tolist())) == 2, "the best one fell"


def test_rising_follows_the_formula() -> None:
    environment = build_environment("rising(num_arms=5, pace=30)")
    state = environment.init(KEY)
    limit, pace = np.asarray(state.limit, float), np.asarray(state.pace, float)
    for arm in (2, 2, 4):
        state = environment.advance(state, jnp.int32(arm))
    n = np.array([0, 0, 2, 0, 1]) + 1
    np.testing.assert_allclose(
        means_after(environment, state), limit * (1 - np.exp(-n / pace)), rtol=1e-5
    )
    forever = state._replace(pulls=jnp.full(5, 10**6))
    np.testing.assert_allclose(means_after(environment, forever), limit, rtol=1e-6)
    assert (pace > 0).all()
    assert (pace <= 60).all()


def test_rising_means_grow_less_and_less() -> None:
    rise = np.diff(course("rising(num_arms=3, pace=20)", 60, arm=1)["mean"][:, 1].astype(float))
    assert (rise > 0).all()
    assert (np.diff(rise) < 1e-6).all()


# Contexts


def test_linear_is_linear() -> None:
    environment = build_environment("linear(num_arms=4, context_dim=3)")
    theta = np.asarray(environment.init(KEY).theta, float)
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1, rtol=1e-6)
    seen = course("linear(num_arms=4, context_dim=3)", 2000)
    np.testing.assert_allclose(seen["mean"], seen["context"] @ theta.T, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(seen["context"], axis=1), 1, rtol=1e-6)
    assert np.abs(seen["context"].mean(axis=0)).max() < 4 * (1 / 3 / 2000) ** 0.5
    assert (seen["sampled"] - seen["mean"]).std() == pytest.approx(0.1, rel=0.05)
    assert environment.spec.reward_range == (-1.0, 1.0)
    assert np.abs(seen["mean"]).max() <= 1 + 1e-6


def test_rotating_linear_turns_in_planes() -> None:
    environment = build_environment("rotating_linear(num_arms=3, context_dim=4, period=8)")
    state = environment.init(KEY)
    u, v = np.asarray(state.begin, float), np.asarray(state.later, float)
    np.testing.assert_allclose((u * v).sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, rtol=1e-5)
    context = np.array([0.5, -0.5, 0.5, 0.5])
    for time in range(20):
        angle = 2 * np.pi * time / 8
        expected = (np.cos(angle) * u + np.sin(angle) * v) @ context
        np.testing.assert_allclose(means_after(environment, state, context), expected, atol=1e-6)
        state = environment.advance(state, jnp.int32(0))


def test_flipping_linear_changes_sign_at_exact_steps() -> None:
    choice = "(num_arms=3, context_dim=2{})"
    plain = course("linear" + choice.format(""), 25)
    seen = course("flipping_linear" + choice.format(", every=10"), 25)
    sign = np.where((np.arange(25) // 10) % 2, -1, 1)
    np.testing.assert_allclose(seen["mean"], plain["mean"] * sign[:, None], atol=1e-6)
    assert seen["era"].tolist() == [0] * 10 + [1] * 10 + [2] * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abrupt(num_arms=0)", "num_arms must be a whole number of at least 1, got 0"),
        ("abrupt(hazard=2)", r"hazard must be a probability in \[0, 1\], got 2"),
        ("abrupt(times=[])", r"times must be a list of rising whole numbers .*, got \[\]"),
        ("abrupt(times=5)", "times must be a list of rising whole numbers .*, got 5"),
        ("abrupt(times=[0, 5])", "each of times must be a whole number of at least 1, got 0"),
        ("abrupt(times=[5, 5])", r"times must be a list of rising .*, got \[5, 5\]"),
        ("abrupt(times=[5, 'x'])", "each of times must be a whole number of at least 1, got 'x'"),
        ("random_walk(step=-1)", "step must be a number of at least 0, got -1"),
        ("flipping(every=0)", "every must be a whole number of at least 1, got 0"),
        ("rotting(law='fast')", "law must be one of step, geometric, power, got 'fast'"),
        ("rotting(num_arms=0)", "num_arms must be a whole number of at least 1, got 0"),
        ("rotting(life=0)", "life must be a whole number of at least 1, got 0"),
        ("rotting(variance=0)", "variance must be a positive number, got 0"),
        ("rising(pace=0)", "pace must be a positive number, got 0"),
        ("linear(context_dim=0)", "context_dim must be a whole number of at least 1, got 0"),
        ("linear(deviation=0)", "deviation must be a positive number, got 0"),
        ("rotating_linear(context_dim=1)", "context_dim must be a whole number of at least 2"),
        ("flipping_linear(every=1.5)", "every must be a whole number of at least 1, got 1.5"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_environment(text)
