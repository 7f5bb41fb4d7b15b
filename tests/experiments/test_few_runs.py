"""Means that hang on a few runs, and what their medians say."""

import numpy as np
import pytest

from driftbandits.experiments.claims import parse_claim
from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.evidence import difference, largest_ratio
from driftbandits.experiments.few_runs import FewRuns, few_runs, few_runs_text, what_hangs
from driftbandits.experiments.metrics import summarise
from driftbandits.experiments.verdicts import Curves, Verdict, judge
from driftbandits.report.wording import beside_text, deciding, hanging_text, verdict_text

TIMES = np.array([50, 100])


def with_outliers(count: int, size: float, runs: int = 100, usual: float = 1.0) -> np.ndarray:
    """Runs about a usual value, a few of which are another one."""
    values = usual + np.linspace(-0.1, 0.1, runs)
    values[:count] = size
    return values


def judged(**lines: np.ndarray) -> Verdict:
    values = {label: np.stack([line, line], axis=1) for label, line in lines.items()}
    claim = parse_claim({"text": "So.", "lower": "a", "higher": "b"}, list(lines), [])
    return judge(claim, Curves(TIMES, values, {}))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (with_outliers(3, 80), FewRuns(3, pytest.approx(240 / 337, abs=0.01))),
        (-with_outliers(3, 80), FewRuns(3, pytest.approx(240 / 337, abs=0.01))),
        (with_outliers(3, -80), FewRuns(3, pytest.approx(240 / 337, abs=0.01))),
        (with_outliers(5, 1000), FewRuns(3, pytest.approx(3 / 5, abs=0.02))),
        (with_outliers(1, 100, runs=10), FewRuns(1, pytest.approx(100 / 109, abs=0.01))),
        (with_outliers(1, 100, runs=9), FewRuns()),
        (with_outliers(5, 10), FewRuns()),
        (with_outliers(20, 100), FewRuns()),
        (np.zeros(50), FewRuns()),
        (np.ones(1), FewRuns()),
    ],
)
def test_a_mean_hangs_on_a_tenth_that_make_half_of_it(values, expected) -> None:
    assert few_runs(values) == expected


@pytest.mark.parametrize("runs", [10, 16, 20, 100])
def test_ordinary_runs_hang_on_no_few(runs: int) -> None:
    """Of normal differences, and of exponential and log-normal(0.5) regrets."""
    generator = np.random.default_rng(runs)
    shape = 500, runs
    for values in (
        generator.normal(size=shape),
        generator.exponential(size=shape),
        generator.lognormal(0, 0.5, shape),
    ):
        assert sum(few_runs(each).runs > 0 for each in values) <= 10
    heavy = generator.lognormal(0, 2.5, shape)
    assert sum(few_runs(each).runs > 0 for each in heavy) > 150


def test_they_are_told_in_a_sentence() -> None:
    assert few_runs_text(FewRuns(3, 0.7), 100) == "3 of 100 runs make 70% of the mean"
    assert few_runs_text(FewRuns(1, 0.5), 10, "it") == "1 of 10 runs makes 50% of it"
    assert few_runs_text(FewRuns(), 100) == ""
    means = {"x": with_outliers(1, 150), "y": with_outliers(2, 300), "z": with_outliers(0, 0)}
    assert what_hangs(means) == "2 of 100 runs make 86% of y"


def test_both_verdicts_are_said_where_mean_and_median_disagree() -> None:
    found = judged(a=with_outliers(0, 0), b=with_outliers(6, 100, usual=0.5))
    assert (found.verdict, found.by_median) == (HOLDS, FAILS)
    claim = found.as_json()
    assert verdict_text(claim) == "holds; by the median: does not hold"
    assert "4 of 100 runs make 62% of the differences, median -0.5" in deciding(claim)
    (entry,) = claim["evidence"]
    assert entry["median"]["verdict"] == FAILS
    assert entry["median"]["low"] <= entry["median"]["median"] <= entry["median"]["high"] < 0


def test_the_median_is_shown_where_the_two_agree() -> None:
    found = judged(a=with_outliers(0, 0), b=with_outliers(6, 100, usual=1.5))
    assert (found.verdict, found.by_median) == (HOLDS, "")
    assert verdict_text(found.as_json()) == "holds"
    assert "4 of 100 runs make 62% of the differences, median 0.5" in deciding(found.as_json())


def test_a_contradiction_is_said_also_where_many_runs_make_it() -> None:
    found = judged(a=with_outliers(0, 0), b=with_outliers(20, 10, usual=0.5))
    assert (found.verdict, found.by_median) == (HOLDS, FAILS)
    assert found.evidence[0].few_runs == ""
    assert deciding(found.as_json()).endswith("(0.652 to 2.29); median -0.5")


def test_the_ordinary_case_is_no_longer_than_before() -> None:
    found = judged(a=with_outliers(0, 0), b=with_outliers(0, 0, usual=2)).as_json()
    assert verdict_text(found) == "holds"
    assert beside_text(found["evidence"][0]) == ""
    assert set(found["evidence"][0]) == {"what", "mean", "low", "high", "verdict"}


def test_a_fall_has_the_median_of_a_fall() -> None:
    start, end = with_outliers(6, 100), with_outliers(0, 0, usual=1.2)
    curves = Curves(TIMES, {"a": np.stack([start, end], axis=1)}, {})
    (entry,) = judge(parse_claim({"text": "So.", "falls": "a"}, ["a"], []), curves).evidence
    assert entry.mean < 0 < entry.median.low <= entry.median.median <= entry.median.high
    assert (entry.verdict, entry.median.verdict) == (HOLDS, FAILS)
    assert entry.few_runs.endswith("of the changes")


def test_settings_are_compared_by_the_pair_that_differs_most() -> None:
    lines = {"x": with_outliers(5, 200), "y": with_outliers(0, 0), "z": with_outliers(0, 0) * 1.5}
    found = largest_ratio("", lines, 2.0, 1)
    assert (found.verdict, found.median.verdict) == (UNDECIDED, HOLDS)
    assert found.median.median == pytest.approx(1.5)
    assert "of x" in found.few_runs


def test_a_ratio_to_nothing_has_no_median() -> None:
    found = largest_ratio("", {"x": with_outliers(5, 200), "y": with_outliers(0, 0) - 1}, 2.0, 1)
    assert found.few_runs
    assert found.median is None


def test_many_rivals_correct_the_median_as_they_correct_the_mean() -> None:
    values = -np.append(np.linspace(-0.2, 1, 30), [200, 200, 200])
    alone, among = difference("", values, 1), difference("", values, 100)
    assert alone.median.high < among.median.high, "the end that refutes"
    assert alone.median.low == among.median.low


def test_a_summary_has_them_and_the_interval_of_its_median() -> None:
    final = summarise(with_outliers(3, 80), "regret")
    assert (final.few_runs, final.few_share) == few_runs(with_outliers(3, 80))
    assert final.median_low < final.median < final.median_high < final.mean
    assert hanging_text(final.as_json(), 100) == (
        "3 of 100 runs make 71% of the mean, median 1.01 (0.985 to 1.03)"
    )
    assert hanging_text(summarise(with_outliers(0, 0), "regret").as_json(), 100) == ""
