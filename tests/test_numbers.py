"""The regrets that the policies of the paper reach on its problems, at its horizons."""

from functools import cache

import pytest

from benchmarks import numbers
from driftbandits import compare, paired_difference

SLOW = "neural_linear"  # at full size by `make numbers` only; here on a fifth of the horizon

measure = cache(numbers.measure)


@pytest.mark.parametrize(
    "case",
    [case for case in numbers.CASES if case.policy != SLOW],
    ids=lambda case: f"{case.environment}-{case.policy}",
)
def test_regret_is_in_the_range_that_prototypes_reached(case: numbers.Case) -> None:
    final = measure(case).final()[case.policy]
    assert case.low <= final.mean <= case.high


def test_energy_term_helps_where_the_rewards_drift() -> None:
    cases = {case.policy: case for case in numbers.CASES if case.environment == "sinusoidal"}
    without, ours = (
        measure(cases[policy]).values[policy][:, -1]
        for policy in ("recurrent(energy=0)", "recurrent")
    )
    assert paired_difference(without, ours).low > 0


def test_neural_linear_learns_the_wheel_but_not_while_it_turns() -> None:
    """Uniform play pays 29.4 per pull; in 2000 pulls the wheel turns once."""
    still, turning = (
        compare([SLOW], environment, horizon=2000, runs=4).final()[SLOW].mean
        for environment in ("wheel", "rotating_wheel")
    )
    assert 1000 < still < 8000
    assert turning > 3 * still
