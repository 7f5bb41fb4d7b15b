"""The environments of the judging set: formulas, distributions, moments of change, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from driftbandits import InputError, build_environment, simulate
from driftbandits.environments.heavy_tailed import student
from driftbandits.numerics.random_keys import key_at
from tests.environments.courses import KEY, course, means_after

JUDGING = [
    "trending(duration=5)",
    'trending(duration=5, then="hold")',
    "seasonal(shortest=3, longest=20)",
    "shocks(hazard=0.2)",
    "close_arms",
    "close_arms(every=4)",
    "recharging",
    "following",
    "nonlinear(every=4)",
    "sparse_linear(period=9)",
    "abrupt(hazard=0.2, heavy_tailed=0.5)",
    "bernoulli(fatigue=0.9)",
]
DEPENDS_ON_PULLS = ("recharging", "following", "bernoulli")

each = pytest.mark.parametrize("choice", JUDGING)


def after_pulls(choice: str, pulls: list[int], seed: int = 7) -> tuple[object, object]:
    environment = build_environment(choice)
    state = environment.init(jax.random.key(seed))
    for arm in pulls:
        state = environment.advance(state, jnp.int32(arm))
    return environment, state


@each
def test_a_world_is_repeatable_and_another_with_another_seed(choice: str) -> None:
    first, again, other = (course(choice, 30, seed=seed) for seed in (3, 3, 4))
    for part, values in first.items():
        np.testing.assert_array_equal(values, again[part])
    assert not np.array_equal(first["sampled"], other["sampled"])


@each
def test_pulls_matter_only_where_it_says_so(choice: str) -> None:
    zero, one = (course(choice, 30, arm=arm)["mean"] for arm in (0, 1))
    assert np.array_equal(zero, one) != choice.startswith(DEPENDS_ON_PULLS)


@pytest.mark.parametrize("choice", ["recharging", "abrupt(heavy_tailed=1, fatigue=0.9)"])
def test_a_simulation_goes_through(choice: str) -> None:
    trace = simulate("oracle", choice, horizon=60, runs=2)
    assert np.isfinite(trace.reward).all()
    np.testing.assert_allclose(trace.regret, 0, atol=1e-5)


# Time


@pytest.mark.parametrize("then", ["turn", "hold"])
def test_trending_moves_on_lines(then: str) -> None:
    environment = build_environment(f'trending(num_arms=4, duration=10, then="{then}")')
    state = environment.init(KEY)
    start, end = np.asarray(state.start, float), np.asarray(state.end, float)
    turning = [*range(10), *range(10, 0, -1)] * 2
    for time in range(40):
        share = (turning[time] if then == "turn" else min(time, 10)) / 10
        expected = (1 - share) * start + share * end
        np.testing.assert_allclose(means_after(environment, state), expected, atol=1e-6)
        assert int(environment.era(state)) == means_after(environment, state).argmax()
        state = environment.advance(state, jnp.int32(0))


def test_trending_levels_are_uniform_and_another_arm_ends_up_best() -> None:
    environment = build_environment("trending")
    state = jax.vmap(environment.init)(jax.random.split(KEY, 2000))
    assert (state.start.argmax(axis=1) != state.end.argmax(axis=1)).all()
    for levels in (state.start, state.end):
        assert stats.kstest(np.asarray(levels).ravel(), "uniform").pvalue > 0.001


def test_seasonal_follows_the_formula() -> None:
    environment = build_environment("seasonal(num_arms=5, shortest=7, longest=90)")
    state = environment.init(KEY)
    level, amplitude, period, phase = (np.asarray(x, float) for x in state[:4])
    seen = course("seasonal(num_arms=5, shortest=7, longest=90)", 300)
    time = np.arange(300)[:, None]
    expected = level + amplitude * np.sin(2 * np.pi * (time / period + phase))
    np.testing.assert_allclose(seen["mean"], expected, atol=1e-5)
    np.testing.assert_array_equal(seen["era"], seen["mean"].argmax(axis=1))
    assert set(np.unique(seen["sampled"])) == {0, 1}


def test_seasonal_draws_periods_by_their_logarithm() -> None:
    state = build_environment("seasonal(num_arms=4000)").init(KEY)
    logarithm = np.log(np.asarray(state.period) / 200) / np.log(5000 / 200)
    assert stats.kstest(logarithm, "uniform").pvalue > 0.001
    assert state.period.min() >= 200
    assert state.period.max() <= 5000
    lowest, highest = state.level - state.amplitude, state.level + state.amplitude
    assert lowest.min() >= 0
    assert highest.max() <= 1
    assert np.asarray(state.amplitude).mean() == pytest.approx(0.175, abs=0.004)


def test_shocks_move_all_arms_by_their_loadings_and_fade() -> None:
    environment = build_environment("shocks(num_arms=6, hazard=0.1, size=0.3, decay=0.9, step=0)")
    state = environment.init(KEY)
    level, loading = np.asarray(state.level, float), np.asarray(state.loading, float)
    away, count, signs = np.zeros(6), 0, set()
    for time in range(1, 150):
        shock_key, _ = jax.random.split(key_at(state.words, jnp.int32(time)))
        number = float(jax.random.uniform(shock_key))
        sign = (number < 0.1) * (1 if number >= 0.05 else -1)
        away, count = 0.9 * away + 0.3 * sign * loading, count + abs(sign)
        signs.add(sign)
        state = environment.advance(state, jnp.int32(0))
        np.testing.assert_allclose(means_after(environment, state), level + away, atol=1e-5)
        assert int(environment.era(state)) == count
    assert signs == {-1, 0, 1}


def test_shocks_have_their_hazard_and_own_moves() -> None:
    steps, hazard = 20_000, 0.02
    seen = course(f"shocks(num_arms=3, hazard={hazard}, decay=0.9, step=0.01)", steps)
    moments = np.diff(seen["era"])
    assert moments.mean() == pytest.approx(hazard, abs=4 * (hazard / steps) ** 0.5)
    calm = course("shocks(num_arms=3, hazard=0, decay=0.9, step=0.01)", steps)["mean"]
    assert calm.std(axis=0) == pytest.approx(0.01 / (1 - 0.9**2) ** 0.5, rel=0.1)
    assert np.abs(np.corrcoef(calm.T)[~np.eye(3, dtype=bool)]).max() < 0.15
    away = calm[:, 0] - calm[:, 0].mean()
    assert (away[1:] * away[:-1]).sum() / (away**2).sum() == pytest.approx(0.9, abs=0.02)


# Tails and gaps


@pytest.mark.parametrize("degrees", [2.5, 3.0, 8.0])
def test_student_has_its_distribution(degrees: float) -> None:
    drawn = np.asarray(student(KEY, degrees, (20_000,)))
    assert stats.kstest(drawn, stats.t(degrees).cdf).pvalue > 0.001


@pytest.mark.parametrize(("value", "deviation", "degrees"), [("2", 2, 3), ("[0.5, 2.5]", 0.5, 2.5)])
def test_heavy_tails_are_scaled_to_the_deviation(value, deviation, degrees) -> None:
    choice = "trending(num_arms=3, deviation=0.001{})"
    plain = course(choice.format(""), 8000)
    seen = course(choice.format(f", heavy_tailed={value}"), 8000)
    np.testing.assert_array_equal(seen["mean"], plain["mean"])
    np.testing.assert_array_equal(seen["era"], plain["era"])
    student = stats.t(degrees, scale=deviation * ((degrees - 2) / degrees) ** 0.5)
    assert student.std() == pytest.approx(deviation)
    noise = (seen["sampled"] - seen["mean"]).ravel()
    assert stats.kstest(noise, student.cdf).pvalue > 0.001
    spec = build_environment(choice.format(f", heavy_tailed={value}")).spec
    assert spec.noise == pytest.approx(deviation, rel=1e-3)
    assert spec.reward_range == (-2 * deviation, 1 + 2 * deviation)


def test_close_arms_has_one_arm_that_is_better() -> None:
    environment = build_environment("close_arms(num_arms=4, level=0.3, gap=0.02)")
    best = []
    for seed in range(200):
        mean = means_after(environment, environment.init(jax.random.key(seed)))
        np.testing.assert_allclose(np.sort(mean), [0.3, 0.3, 0.3, 0.32], rtol=1e-6)
        best.append(mean.argmax())
    assert stats.chisquare(np.bincount(best, minlength=4)).pvalue > 0.001
    assert environment.era is None
    assert (np.diff(course("close_arms", 50)["mean"], axis=0) == 0).all()


def test_close_arms_switch_to_another_arm_at_exact_steps() -> None:
    seen = course("close_arms(num_arms=3, every=10)", 4000)
    best = seen["mean"].argmax(axis=1)
    assert (np.flatnonzero(np.diff(best)) + 1).tolist() == list(range(10, 4000, 10))
    np.testing.assert_array_equal(seen["era"], np.arange(4000) // 10)
    steps = (np.diff(best[::10]) % 3) - 1
    assert stats.binomtest(int(steps.sum()), len(steps)).pvalue > 0.001, "both others alike"


# Pulls


def test_recharging_recovers_since_the_last_pull() -> None:
    environment, state = after_pulls("recharging(num_arms=4, pace=3)", [2, 0, 0, 1])
    full, pace = np.asarray(state.full, float), np.asarray(state.pace, float)
    since = np.array([2, 1, 4, np.inf])
    expected = full * (1 - np.exp(-since / pace))
    np.testing.assert_allclose(means_after(environment, state), expected, rtol=1e-5)
    fresh = environment.init(KEY)
    np.testing.assert_allclose(means_after(environment, fresh), full, rtol=1e-6)


def test_recharging_draws_worth_and_pace() -> None:
    state = build_environment("recharging(num_arms=4000, pace=5)").init(KEY)
    assert stats.kstest(np.asarray(state.full), "uniform").pvalue > 0.001
    assert stats.kstest(np.asarray(state.pace) / 10, "uniform").pvalue > 0.001
    assert state.pace.min() > 0


def test_following_adds_the_effect_of_the_arm_before() -> None:
    environment, state = after_pulls("following(num_arms=4, effect=0.2)", [])
    base, effect = np.asarray(state.base), np.asarray(state.effect)
    np.testing.assert_allclose(means_after(environment, state), base, rtol=1e-6)
    for arm in (3, 0, 0, 2):
        state = environment.advance(state, jnp.int32(arm))
        expected = base + effect[arm]
        np.testing.assert_allclose(means_after(environment, state), expected, rtol=1e-6)


def test_following_draws_means_that_are_probabilities() -> None:
    state = build_environment("following(num_arms=200, effect=0.3)").init(KEY)
    base, effect = np.asarray(state.base), np.asarray(state.effect)
    assert stats.kstest(base, stats.uniform(0.3, 0.4).cdf).pvalue > 0.001
    assert stats.kstest(effect.ravel(), stats.uniform(-0.3, 0.6).cdf).pvalue > 0.001
    assert ((base + effect >= 0) & (base + effect <= 1)).all()


def test_fatigue_multiplies_the_mean_by_pulls_in_a_row() -> None:
    choice = "bernoulli(num_arms=3, fatigue=0.8)"
    fresh = means_after(*after_pulls(choice, []))
    for pulls, factors in (
        ([1], [1, 0.8, 1]),
        ([1, 1, 1], [1, 0.8**3, 1]),
        ([1, 1, 2], [1, 1, 0.8]),
        ([0, 1, 0, 0], [0.64, 1, 1]),
    ):
        found = means_after(*after_pulls(choice, pulls))
        np.testing.assert_allclose(found, fresh * factors, rtol=1e-5)


def test_fatigue_keeps_the_noise() -> None:
    plain, tired = (course(f"random_walk(num_arms=3, {s})", 50) for s in ("", "fatigue=0.9"))
    np.testing.assert_allclose(
        tired["sampled"] - tired["mean"], plain["sampled"] - plain["mean"], atol=1e-6
    )
    np.testing.assert_allclose(
        tired["mean"][:, 0], plain["mean"][:, 0] * 0.9 ** np.arange(50), rtol=1e-5
    )


@pytest.mark.parametrize(("factor", "after"), [(1, 1.0), (0, 0.0)])
def test_fatigue_at_the_ends(factor: int, after: float) -> None:
    choice = f"bernoulli(num_arms=2, fatigue={factor})"
    fresh = means_after(*after_pulls(choice, []))
    np.testing.assert_allclose(means_after(*after_pulls(choice, [0])), fresh * [after, 1])


@pytest.mark.parametrize("transformation", ["fatigue=0.9", "heavy_tailed=1"])
def test_transformations_pass_on_era_and_delay(transformation: str) -> None:
    plain = course("flipping(num_arms=2, every=3)", 12)
    changed = course(f"flipping(num_arms=2, every=3, {transformation})", 12)
    np.testing.assert_array_equal(changed["era"], plain["era"])
    late = build_environment(f"flipping(delayed=5, {transformation})")
    assert late.delay is not None
    assert late.delay.longest == 5
    assert build_environment(f"bernoulli({transformation})").era is None


def test_fatigue_has_nothing_in_its_range() -> None:
    assert build_environment("bernoulli(scaled=[1, 5], fatigue=0.9)").spec.reward_range == (0, 6)


# Contexts


def waves_of(state: object, contexts: np.ndarray) -> np.ndarray:
    """Both functions of every arm: (2, contexts, num_arms)."""
    waves, shifts = np.asarray(state.waves, float), np.asarray(state.shifts, float)
    inside = np.einsum("fkmd,nd->fnkm", waves, contexts) + shifts[:, None]
    return np.sqrt(2 / waves.shape[2]) * np.sin(inside).sum(axis=-1)


@pytest.mark.parametrize(
    ("settings", "angle"),
    [
        ("", lambda t: 0 * t),
        (", period=8", lambda t: 2 * np.pi * t / 8),
        (", every=3", lambda t: np.pi / 2 * (t // 3)),
    ],
)
def test_nonlinear_follows_the_formula(settings, angle) -> None:
    choice = f"nonlinear(num_arms=4{settings})"
    seen = course(choice, 30)
    first, second = waves_of(build_environment(choice).init(KEY), seen["context"])
    turn = angle(np.arange(30))[:, None]
    value = 2 * (np.cos(turn) * first + np.sin(turn) * second)
    np.testing.assert_allclose(seen["mean"], 1 / (1 + np.exp(-value)), atol=1e-4)
    eras = np.arange(30) // 3 if "every" in settings else np.full(30, -1)
    np.testing.assert_array_equal(seen["era"], eras)


def test_nonlinear_is_far_from_linear() -> None:
    shares, variances = [], []
    for seed in range(10):
        seen = course("nonlinear", 2000, seed=seed)
        design = np.column_stack([np.ones(2000), seen["context"]])
        fitted = design @ np.linalg.lstsq(design, seen["mean"], rcond=None)[0]
        shares.append(fitted.var(axis=0) / seen["mean"].var(axis=0))
        variances.append(seen["mean"].var(axis=0))
    assert np.mean(shares) < 0.3, "share of the variance that a linear function explains"
    assert np.mean(variances) > 0.05, "the context matters"
    assert (np.abs(seen["context"]) <= 1).all()
    assert stats.kstest(seen["context"].ravel(), stats.uniform(-1, 2).cdf).pvalue > 0.001
    assert (seen["sampled"] - seen["mean"]).std() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(("settings", "period"), [("period=8", 8), ("period=none", None)])
def test_sparse_linear_has_one_weight_that_turns(settings: str, period: int | None) -> None:
    choice = f"sparse_linear(num_arms=3, context_dim=4, {settings})"
    state = build_environment(choice).init(KEY)
    seen = course(choice, 40)
    turn = 0 if period is None else np.arange(40)[:, None] / period
    weight = np.cos(2 * np.pi * (turn + np.asarray(state.phase, float)))
    expected = weight * seen["context"][:, [int(state.place)]]
    np.testing.assert_allclose(seen["mean"], expected, atol=1e-5)


def test_sparse_linear_draws_any_number_of_the_context() -> None:
    environment = build_environment("sparse_linear")
    state = jax.vmap(environment.init)(jax.random.split(KEY, 800))
    assert stats.chisquare(np.bincount(state.place, minlength=8)).pvalue > 0.001
    assert stats.kstest(np.asarray(state.phase).ravel(), "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trending(duration=0)", "duration must be a whole number of at least 1, got 0"),
        ("trending(duration=2000000000)", "duration must be a whole number of at most 1000000000"),
        ("trending(then='stop')", "then must be one of turn, hold, got 'stop'"),
        ("trending(deviation=0)", "deviation must be a positive number, got 0"),
        ("seasonal(shortest=0)", "shortest must be a whole number of at least 1, got 0"),
        ("seasonal(longest=100)", "longest must be a whole number of at least 200, got 100"),
        ("shocks(hazard=2)", r"hazard must be a probability in \[0, 1\], got 2"),
        ("shocks(decay=1.1)", r"decay must be a probability in \[0, 1\], got 1.1"),
        ("shocks(size=-1)", "size must be a number of at least 0, got -1"),
        ("shocks(deviation=0)", "deviation must be a positive number, got 0"),
        ("bernoulli(heavy_tailed=-1)", "heavy_tailed must be a number of at least 0, .*, got -1"),
        ("bernoulli(heavy_tailed=[1, 2])", r"heavy_tailed must be .* one above 2, got \[1, 2\]"),
        ("bernoulli(heavy_tailed=[1, 3, 4])", "heavy_tailed must be a number of at least 0, or"),
        ("bernoulli(heavy_tailed='much')", "heavy_tailed must be a number .*, got 'much'"),
        ("close_arms(num_arms=1)", "num_arms must be a whole number of at least 2, got 1"),
        ("close_arms(gap=0)", "gap must be a positive number, got 0"),
        ("close_arms(level=0.9, gap=0.2)", "gap must be at most 1 - level, got 0.2"),
        ("close_arms(every=0)", "every must be a whole number of at least 1, got 0"),
        ("recharging(pace=0)", "pace must be a positive number, got 0"),
        ("following(effect=0.6)", r"effect must be a number in \[0, 0.5\], got 0.6"),
        ("nonlinear(frequency=0)", "frequency must be a positive number, got 0"),
        ("nonlinear(period=0)", "period must be a whole number of at least 1, got 0"),
        ("nonlinear(every=1.5)", "every must be a whole number of at least 1, got 1.5"),
        ("nonlinear(period=9, every=3)", "every must be none where there is a period, got 3"),
        ("sparse_linear(context_dim=0)", "context_dim must be a whole number of at least 1, got 0"),
        ("sparse_linear(period=0)", "period must be a whole number of at least 1, got 0"),
        ("bernoulli(fatigue=1.5)", r"fatigue must be a probability in \[0, 1\], got 1.5"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_environment(text)
