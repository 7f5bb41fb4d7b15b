"""The number of runs that would decide a claim is about right."""

import numpy as np
import pytest

from driftbandits.experiments.claims import parse_claim
from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED, Effect, Range
from driftbandits.experiments.evidence import difference
from driftbandits.experiments.files import experiment_from
from driftbandits.experiments.more_runs import needed_text, rounded_up, runs_to_decide
from driftbandits.experiments.verdicts import Curves, judge
from driftbandits.running.assembly import judged_results

ABOVE, BELOW, BETWEEN = Range(0, np.inf), Range(-np.inf, 2), Range(-0.1, 0.1)


@pytest.mark.parametrize(
    ("effect", "claimed", "expected"),
    [
        ((1, -1, 4), ABOVE, 40),
        ((-1, -2, 1), ABOVE, 40),
        ((1.5, 0, 2.5), BELOW, 40),
        ((3, 1, 9), BELOW, 40),
        ((1.5, -np.inf, 2.5), BELOW, 40),
        ((0.05, -0.15, 0.2), BETWEEN, 90),
        ((0.2, 0, 0.3), BETWEEN, 40),
        ((0, -1, 1), ABOVE, np.inf),
        ((2, 1, 3), BELOW, np.inf),
        ((1.5, 1, np.inf), BELOW, np.nan),
        ((np.nan, np.nan, np.nan), BELOW, np.nan),
        ((1, np.nan, np.nan), ABOVE, np.nan),
    ],
)
def test_ends_come_closer_with_the_square_root(effect, claimed, expected) -> None:
    found = runs_to_decide(Effect(*effect), claimed, 10)
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("skewed", [False, True])
def test_so_many_runs_decide_about_half_and_twice_as_many_four_of_five(skewed: bool) -> None:
    """Where the true mean is the estimate: with fewer than half as many, most are undecided."""
    generator, true = np.random.default_rng(0), 0.25

    def drawn(runs: int) -> np.ndarray:
        noise = generator.exponential(size=(400, runs)) - 1
        return true + (noise if skewed else generator.normal(size=(400, runs)))

    first = [difference("", x - x.mean() + true, 1) for x in drawn(16)]
    needed = np.median([entry.runs_needed for entry in first if entry.verdict == UNDECIDED])

    def share_decided(runs: float) -> float:
        return np.mean([difference("", x, 1).verdict != UNDECIDED for x in drawn(round(runs))])

    assert 16 < needed < 100
    assert share_decided(needed / 3) < 0.3
    assert 0.4 < share_decided(needed) < 0.65
    assert 0.75 < share_decided(2 * needed) < 0.9


def levels(runs: int, **means: float) -> dict[str, np.ndarray]:
    """Lines with these means, exactly, and noise that is their own."""
    generator = np.random.default_rng(1)
    noise = generator.normal(size=(len(means), runs))
    noise -= noise.mean(axis=1, keepdims=True)
    noise /= noise.std(axis=1, keepdims=True)
    each = zip(means.items(), noise, strict=True)
    return {label: (mean + values)[:, None] for (label, mean), values in each}


def why(runs: int, **means: float) -> str:
    curves = Curves(np.array([10]), levels(runs, **means), {})
    table = {"text": "So.", "lower": "a", "higher": [x for x in means if x != "a"]}
    return judge(parse_claim(table, list(means), []), curves).why


def count_in(text: str) -> int:
    return int(text.split()[1].replace(",", ""))


def test_one_rival_that_is_lower_refutes_and_all_must_be_higher_to_hold() -> None:
    near, far = why(20, a=0, b=0.2), why(20, a=0, b=0.6)
    assert count_in(far) < count_in(near)
    assert abs(count_in(why(20, a=0, b=0.2, c=0.6)) - count_in(near)) < 0.5 * count_in(near)
    refuting = count_in(why(20, a=0, b=-0.5, c=0.2))
    assert refuting < 0.5 * count_in(near), "one is enough"


def test_what_is_decided_needs_nothing() -> None:
    assert why(20, a=0, b=3) == why(20, a=3, b=0) == ""


def test_an_estimate_on_the_boundary_is_not_decided_by_runs() -> None:
    assert "on the boundary or next to it" in why(20, a=1, b=1)
    assert needed_text(np.inf, 20) == needed_text(2001, 20) != needed_text(2000, 20)
    assert "cannot be said" in needed_text(np.nan, 20)


def test_numbers_of_runs_have_two_digits() -> None:
    assert [rounded_up(x) for x in (2.1, 57.0, 57.2, 123, 4321)] == [3, 57, 58, 130, 4400]
    assert needed_text(1234, 50) == "about 1,300 runs would decide it, if the estimate stays"


def test_runs_that_choose_settings_are_counted() -> None:
    """A third of the runs chooses, so that half as many come on top."""
    table = {
        "title": "Tuned",
        "environment": "bernoulli",
        "policies": {"a": "ucb", "b": "swa"},
        "tuning": {"b": {"alpha": [0.1]}},
        "runs": 30,
        "claims": [{"text": "So.", "lower": "a", "higher": "b"}],
    }
    experiment = experiment_from("tuned", table)
    lines = levels(30, a=0, b=0.3)
    values = {line.label: lines[line.label[0]] for line in experiment.lines()}
    results = judged_results(experiment, np.array([10]), values, {}, dict)
    (claim,) = results.claims
    (entry,) = claim["evidence"]
    assert claim["verdict"] == UNDECIDED
    alone = difference("", (lines["b"] - lines["a"])[10:, 0], 1)
    assert alone.leans in (HOLDS, FAILS)
    assert entry["mean"] == pytest.approx(alone.mean)
    assert count_in(claim["why"]) == rounded_up(1.5 * alone.runs_needed)
