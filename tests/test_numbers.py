"""The regrets that the policies of the paper reach on its problems, at its horizons."""

import pytest

from benchmarks.numbers import CASES, Case, measure
from driftbandits import compare, paired_difference

RUNS = 20
SLOW = "neural_linear"  # at full size by `make numbers` only; here on a fifth of the horizon


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.policy != SLOW],
    ids=lambda case: f"{case.environment}-{case.policy}",
)
def test_regret_is_in_the_range_that_prototypes_reached(case: Case) -> None:
    final = measure(case).final()[case.policy]
    assert case.low <= final.mean <= case.high


def test_energy_term_helps_where_the_rewards_drift() -> None:
    policies = ["recurrent(energy=0)", "recurrent"]
    values = compare(policies, "sinusoidal", horizon=10_000, runs=RUNS).values
    difference = paired_difference(*(values[policy][:, -1] for policy in policies))
    assert difference.low > 0


def test_neural_linear_learns_the_wheel_but_not_while_it_turns() -> None:
    """Uniform play pays 29.4 per pull; in 2000 pulls the wheel turns once."""
    still, turning = (
        compare([SLOW], environment, horizon=2000, runs=4).final()[SLOW].mean
        for environment in ("wheel", "rotating_wheel")
    )
    assert 1000 < still < 8000
    assert turning > 3 * still
