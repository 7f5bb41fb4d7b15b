"""Transformations of any environment: sleeping, noisy and scaled, and the order of several."""

import numpy as np
import pytest

from driftbandits import ENVIRONMENTS, InputError, build_environment
from driftbandits.choice import parse, with_defaults
from driftbandits.environments.sleeping import sleeping
from tests.environments.courses import course


def test_sleeping_arms_are_awake_with_the_probability() -> None:
    steps, probability = 20_000, 0.3
    awake = course(f"bernoulli(num_arms=3, sleeping={probability})", steps)["available"]
    assert awake.any(axis=1).all()
    nobody = (1 - probability) ** 3  # then one of three is woken
    expected = probability + nobody / 3
    error = 4 * (expected * (1 - expected) / steps) ** 0.5
    assert np.abs(awake.mean(axis=0) - expected).max() < error
    both = (awake[:, 0] & awake[:, 1]).mean()
    assert both == pytest.approx(probability**2, abs=4 * 0.3 / steps**0.5), "independently"


@pytest.mark.parametrize(("probability", "number"), [(0, 1), (1, 4)])
def test_sleeping_at_the_ends(probability: int, number: int) -> None:
    awake = course(f"bernoulli(num_arms=4, sleeping={probability})", 200)["available"]
    assert (awake.sum(axis=1) == number).all()
    assert awake.any(axis=0).all()


def test_sleeping_by_schedule_repeats() -> None:
    seen = course("flipping(num_arms=3, sleeping=[[1, 0, 1], [0, 1, 0], [1, 1, 1]])", 8)
    rows = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]
    assert seen["available"].astype(int).tolist() == [rows[time % 3] for time in range(8)]


def test_sleeping_twice_leaves_somebody_awake() -> None:
    inner = build_environment("bernoulli(num_arms=3, sleeping=[[1, 0, 1]])")
    assert course(sleeping(inner, [[1, 1, 0], [0, 1, 0]]), 2)["available"].astype(int).tolist() == [
        [1, 0, 0],
        [1, 0, 1],
    ]
    awake = course(sleeping(inner, 0.0), 50)["available"]
    assert not awake[:, 1].any()
    assert (awake.sum(axis=1) == 1).all()


def test_sleeping_leaves_the_means_as_they_are() -> None:
    plain, drowsy = (course(f"random_walk({s})", 30) for s in ("", "sleeping=0.5"))
    np.testing.assert_array_equal(plain["mean"], drowsy["mean"])


def test_noise_adds_up() -> None:
    choice = "rotting(noisy=1.5)"
    seen = course(choice, 8000)
    assert (seen["sampled"] - seen["mean"]).var() == pytest.approx(0.2 + 1.5**2, rel=0.06)
    spec = build_environment(choice).spec
    assert spec.noise == pytest.approx((0.2 + 1.5**2) ** 0.5)
    assert spec.reward_range == (-3.0, 4.0)


def test_scaling_changes_unit_and_origin() -> None:
    plain, changed = course("wheel", 50), course("wheel(scaled=[4, -3])", 50)
    for part in ("sampled", "mean"):
        np.testing.assert_allclose(changed[part], 4 * plain[part] - 3, rtol=1e-5)
    spec = build_environment("wheel(scaled=[4, -3])").spec
    assert spec.reward_range == (-3.0, 197.0)
    assert spec.noise == pytest.approx(0.04)
    assert build_environment("linear(scaled=0.5)").spec.reward_range == (-0.5, 0.5)


def test_order_of_transformations_is_the_one_written_in_experiments_too() -> None:
    def low(text: str) -> float:
        written_out = str(with_defaults(parse("environment", text), ENVIRONMENTS))
        specs = [build_environment(t).spec for t in (text, written_out)]
        assert specs[0] == specs[1]
        return specs[0].reward_range[0]

    assert low("bernoulli(scaled=10, noisy=1)") == -2
    assert low("bernoulli(noisy=1, scaled=10)") == -20
    assert low("bernoulli(scaled=[1, 5], max_consecutive=2)") == 0
    assert low("bernoulli(max_consecutive=2, scaled=[1, 5])") == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bernoulli(sleeping=1.5)", r"sleeping must be a probability in \[0, 1\], got 1.5"),
        ("bernoulli(sleeping=[])", r"sleeping must be a probability, or .*, got \[\]"),
        ("bernoulli(num_arms=2, sleeping=[[1, 0, 1]])", "a list of lists of 2 numbers 0 or 1"),
        ("bernoulli(num_arms=2, sleeping=[[1, 0], [0, 0]])", "0 or 1, not all 0, got"),
        ("bernoulli(num_arms=2, sleeping=[1, 0])", "sleeping must be a probability, or a list of"),
        ("bernoulli(num_arms=2, sleeping=[[1, 2]])", "sleeping must be a probability, or a list"),
        ("bernoulli(noisy=-1)", "noisy must be a number of at least 0, got -1"),
        ("bernoulli(scaled=0)", "scaled must be a positive number, or a pair .*, got 0"),
        ("bernoulli(scaled=[-1, 0])", r"scaled must be a positive number, .*, got \[-1, 0\]"),
        ("bernoulli(scaled=[1, 2, 3])", "scaled must be a positive number, or a pair"),
        ("bernoulli(scaled='two')", "scaled must be a positive number, or a pair .*, got 'two'"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_environment(text)
