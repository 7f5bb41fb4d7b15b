"""Regrets with known answers, and intervals that cover what they should."""

import numpy as np
import pytest

from driftbandits import MEASURES, Trace, estimate, paired_difference, simulate
from driftbandits.experiments.metrics import (
    MORE_IS_BETTER,
    best_share,
    mean_regret,
    own_count_regret,
    policy_regret,
    realised_regret,
    recovery_time,
    summarise,
    window_regret,
)
from driftbandits.report.curves import MEANINGS

LIFE = 7500


@pytest.fixture(scope="module")
def rotting() -> dict[str, Trace]:
    return {
        policy: simulate(policy, "rotting", horizon=30_000, runs=4, record_every=500)
        for policy in ("uniform", "oracle", "swa")
    }


def optimum(times: np.ndarray) -> np.ndarray:
    return np.where(times <= LIFE, times, LIFE + 0.5 * (times - LIFE))


def test_oracle_is_optimal_on_rotting(rotting: dict[str, Trace]) -> None:
    oracle = rotting["oracle"]
    np.testing.assert_allclose(oracle.expected_reward, np.tile(optimum(oracle.times), (4, 1)))
    assert (oracle.pulls[:, -1] == [22_500, 7500]).all()
    assert oracle.expected_reward[0, -1] == pytest.approx(18_750)


@pytest.mark.parametrize("policy", ["uniform", "swa"])
def test_policy_regret_in_closed_form(rotting: dict[str, Trace], policy: str) -> None:
    trace = rotting[policy]
    second = trace.pulls[:, :, 1]
    expected = np.where(second <= LIFE, 0.5 * (LIFE - second), 0.1 * (second - LIFE))
    late = trace.times >= LIFE
    measured = policy_regret(trace, rotting["oracle"])
    np.testing.assert_allclose(measured[:, late], expected[:, late], rtol=1e-4, atol=0.05)


def test_policy_regret_can_fall_but_own_count_regret_cannot(rotting: dict[str, Trace]) -> None:
    """Uniform play: 1870 at 7500, nothing at 15000, 750 at 30000; own counts give 4473."""
    trace = rotting["uniform"]
    at = {t: list(trace.times).index(t) for t in (7500, 15_000, 30_000)}
    measured = policy_regret(trace, rotting["oracle"]).mean(axis=0)
    assert measured[at[7500]] == pytest.approx(1870, rel=0.02)
    assert measured[at[15_000]] == pytest.approx(0, abs=60)
    assert measured[at[30_000]] == pytest.approx(750, rel=0.05)
    own = own_count_regret(trace)
    assert (np.diff(own, axis=1) >= 0).all()
    assert own[:, -1].mean() == pytest.approx(4473, rel=0.03)


def test_policy_regret_needs_the_oracle(rotting: dict[str, Trace]) -> None:
    with pytest.raises(TypeError, match="needs the oracle's trace"):
        policy_regret(rotting["swa"])


def test_realised_regret_is_the_papers_formula() -> None:
    """Over ten coins the comparator is nearly always 1, so even the oracle pays about 0.09."""
    trace = simulate("oracle", "bernoulli", horizon=2000, runs=32)
    assert (trace.regret == 0).all()
    realised = realised_regret(trace)[:, -1] / 2000
    best = trace.expected_reward[:, -1] / 2000
    assert (realised > 0).all()
    assert realised.mean() == pytest.approx(0.999 - best.mean(), abs=0.02)


def test_mean_regret_is_per_pull() -> None:
    trace = simulate("uniform", "bernoulli", horizon=100, runs=2, record_every=10)
    np.testing.assert_allclose(mean_regret(trace) * trace.times, trace.regret)


def trace_of(best: list[int], changes: list[int], regret: list[float], every: int = 10) -> Trace:
    """One run that is recorded every ten steps; numbers are per interval."""
    sums = {"best_pulls": best, "changes": changes, "regret": regret}
    totals = {name: np.cumsum([values], axis=1) for name, values in sums.items()}
    nothing = np.zeros((1, len(best)))
    others = dict.fromkeys(("realised_regret", "expected_reward", "reward"), nothing)
    times = every * np.arange(1, len(best) + 1)
    return Trace(times, **others, **totals, pulls=np.zeros((1, len(best), 2)))


def test_recovery_takes_until_half_of_the_pulls_are_of_a_best_arm() -> None:
    best = [10, 9, 0, 3, 5, 9, 0, 1, 0, 2]
    changes = [0, 1, 0, 0, 0, 0, 1, 0, 1, 0]
    trace = trace_of(best, changes, [0.0] * 10)
    # The first takes the intervals 2 and 3; the second ends with the third change; that one never.
    lost = np.cumsum([0, 0, 10, 10, 0, 0, 0, 10, 10, 10])
    expected = lost / [1, 1, 1, 1, 1, 1, 2, 2, 3, 3]
    np.testing.assert_allclose(recovery_time(trace), [expected])


def test_best_share_counts_pulls_of_a_best_arm() -> None:
    trace = simulate("uniform", "bernoulli(num_arms=4)", horizon=400, runs=8)
    at_regret_zero = simulate("oracle", "bernoulli(num_arms=4)", horizon=400, runs=8)
    assert (best_share(at_regret_zero) == 1).all()
    assert best_share(trace)[:, -1].mean() == pytest.approx(0.25, abs=0.04)


def test_window_regret_is_over_a_twentieth_of_the_horizon() -> None:
    regret = np.arange(40.0)
    trace = trace_of([0] * 40, [0] * 40, regret.tolist())
    values = window_regret(trace)[0]
    assert values[0] == 0
    np.testing.assert_allclose(values[1:], (regret[1:] + regret[:-1]) / 20)


def test_changes_are_counted_at_their_moments() -> None:
    """A flip every 100 steps, which the hundredth step brings about; the oracle knows at once."""
    trace = simulate("oracle", "flipping(every=100)", horizon=1000, runs=2, record_every=10)
    np.testing.assert_array_equal(trace.changes, [trace.times // 100] * 2)
    assert (recovery_time(trace) == 0).all()
    still = simulate("uniform", "bernoulli", horizon=50, runs=2)
    assert not still.changes.any()


def test_every_measure_has_a_shape_and_a_sentence(rotting: dict[str, Trace]) -> None:
    assert set(MEANINGS) == set(MEASURES), "a figure needs a name for its axis"
    for name, measure in MEASURES.items():
        values = measure(rotting["swa"], rotting["oracle"])
        assert values.shape == (4, 60), name
        assert measure.__doc__


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    """Of 400 experiments with 30 runs, 95% within 4 standard errors."""
    generator = np.random.default_rng(0)
    values = generator.normal(3.0, 2.0, size=(30, 400))
    low, high = estimate(values)[1:]
    assert ((low <= 3) & (high >= 3)).mean() == pytest.approx(
        0.95, abs=4 * (0.95 * 0.05 / 400) ** 0.5
    )


def test_estimate_is_repeatable_and_shrinks() -> None:
    generator = np.random.default_rng(1)
    values = generator.exponential(size=(200, 3))
    first, second = estimate(values), estimate(values)
    np.testing.assert_array_equal(first.low, second.low)
    np.testing.assert_allclose(first.mean, values.mean(axis=0))
    wide = estimate(values[:20])
    assert (first.high - first.low < wide.high - wide.low).all()


def test_one_run_has_no_interval() -> None:
    alone = estimate(np.array([[1.0, 2.0]]))
    assert alone.mean.tolist() == [1.0, 2.0]
    assert np.isnan(alone.low).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_a_summary_tells_how_bad_it_gets(measure: str) -> None:
    values = np.random.default_rng(3).permutation(np.arange(1001) / 1000)
    found = summarise(values, measure)
    assert found[:3] == estimate(values)
    assert found.median == 0.5
    sign = -1 if measure in MORE_IS_BETTER else 1
    better = sign * values < sign * found.percentile_95
    assert better.mean() == pytest.approx(0.95, abs=0.002)
    assert found.worst == (0 if measure in MORE_IS_BETTER else 1)
    assert found.as_json() == found._asdict()


def test_a_summary_of_one_run() -> None:
    found = summarise(np.array([2.0]), "regret").as_json()
    assert found["low"] is found["high"] is None
    assert found["mean"] == found["median"] == found["percentile_95"] == found["worst"] == 2


def test_pairing_removes_what_the_worlds_have_in_common() -> None:
    generator = np.random.default_rng(2)
    world = generator.normal(0, 10, size=50)
    first, second = world + 1 + generator.normal(0, 0.1, 50), world
    difference = paired_difference(first, second)
    assert difference.low > 0.9
    assert difference.high < 1.1
    assert float(difference.mean) == pytest.approx(1, abs=0.1)


def test_pairs_must_match() -> None:
    with pytest.raises(ValueError, match=r"second must be of the shape \(3,\)"):
        paired_difference(np.zeros(3), np.zeros(4))
