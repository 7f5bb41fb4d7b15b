"""Verdicts on made-up curves with known answers."""

import json
from typing import Any

import numpy as np
import pytest

from driftbandits import estimate
from driftbandits.experiments.claims import KINDS, parse_claim
from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.files import experiment_from
from driftbandits.experiments.verdicts import Curves, Verdict, judge
from driftbandits.report.wording import deciding
from tools.calibration import LAYOUTS, bootstrapped_ratio, paired_ratios, sweeps

TIMES = np.arange(10, 101, 10)
SHARE = TIMES / 100  # of the horizon
FLAT = np.ones(10)
SETTLED = np.minimum(SHARE, 0.5)
SLOWING = np.interp(SHARE, [0.5, 1.0], [0.9, 1.0])  # grows by a tenth in the second half
SWEEP = {"a": {0.0: "a0", 0.1: "a1", 1.0: "a2"}}
LABELS = ["a", "b", "c", "d", "a0", "a1", "a2"]


def made_up(spread: float = 0.1, runs: int = 80, **levels: Any) -> Curves:
    """Lines that have these means, exactly, and noise around them."""
    generator = np.random.default_rng(0)
    values = {}
    for label, level in levels.items():
        noise = generator.normal(0, spread, (runs, len(TIMES)))
        values[label] = level * FLAT + noise - noise.mean(axis=0)
    return Curves(TIMES, values, SWEEP)


def verdict_on(curves: Curves, **table: Any) -> Verdict:
    return judge(parse_claim({"text": "It is so.", **table}, LABELS, list(SWEEP)), curves)


def bootstrap(effect: Any, *values: np.ndarray) -> np.ndarray:
    """An interval of an effect on means, drawn run by run with another seed."""
    generator = np.random.default_rng(1)
    runs = len(values[0])
    drawn = [generator.integers(runs, size=runs) for _ in range(4000)]
    return np.percentile([effect(*(v[rows].mean() for v in values)) for rows in drawn], [2.5, 97.5])


CASES = [
    ({"lower": "a", "higher": "b"}, {"a": 1, "b": 2}, HOLDS),
    ({"lower": "a", "higher": "b"}, {"a": 2, "b": 1}, FAILS),
    ({"lower": "a", "higher": "b"}, {"a": 1, "b": 1}, UNDECIDED),
    ({"lower": "a", "higher": "b", "factor": 2}, {"a": 1, "b": 3}, HOLDS),
    ({"lower": "a", "higher": "b", "factor": 2}, {"a": 1, "b": 1.5}, FAILS),
    ({"lower": "a", "higher": "b", "factor": 2}, {"a": 1, "b": 2}, UNDECIDED),
    ({"near": "a", "to": "b", "factor": 2}, {"a": 1.5, "b": 1}, HOLDS),
    ({"near": "a", "to": "b", "factor": 2}, {"a": 0.2, "b": 1}, HOLDS),
    ({"near": "a", "to": "b", "factor": 2}, {"a": 3, "b": 1}, FAILS),
    ({"near": "a", "to": "b", "factor": 2}, {"a": 2, "b": 1}, UNDECIDED),
    ({"falls": "a"}, {"a": 2 - SHARE}, HOLDS),
    ({"falls": "a"}, {"a": 1 + SHARE}, FAILS),
    ({"falls": "a"}, {"a": FLAT}, UNDECIDED),
    ({"rises": "a"}, {"a": 1 + SHARE}, HOLDS),
    ({"rises": "a"}, {"a": 2 - SHARE}, FAILS),
    ({"rises": "a"}, {"a": FLAT}, UNDECIDED),
    ({"levels_off": "a"}, {"a": SETTLED}, HOLDS),
    ({"levels_off": "a"}, {"a": SHARE}, FAILS),
    ({"levels_off": "a"}, {"a": 2 - SHARE}, FAILS),
    ({"levels_off": "a"}, {"a": SLOWING}, UNDECIDED),
    ({"levels_off": "a", "tolerance": 0.6}, {"a": SHARE}, HOLDS),
    ({"keeps_growing": "a"}, {"a": SHARE}, HOLDS),
    ({"keeps_growing": "a"}, {"a": SETTLED}, FAILS),
    ({"keeps_growing": "a"}, {"a": SLOWING}, UNDECIDED),
    ({"keeps_growing": "a", "tolerance": 0.6}, {"a": SHARE}, FAILS),
    ({"stable": "a", "factor": 2}, {"a0": 1, "a1": 1.5, "a2": 1.2}, HOLDS),
    ({"stable": "a", "factor": 2}, {"a0": 3, "a1": 1.5, "a2": 1.2}, FAILS),
    ({"stable": "a", "factor": 2}, {"a0": 2, "a1": 1.5, "a2": 1}, UNDECIDED),
    ({"stable": "a", "factor": 2, "values": [0.1, 1.0]}, {"a0": 9, "a1": 1, "a2": 1.5}, HOLDS),
    ({"stable": "a", "factor": 2, "values": [0.1, 1.0]}, {"a0": 1, "a1": 1, "a2": 3}, FAILS),
    ({"stable": "a", "factor": 2, "values": [0.1, 1.0]}, {"a0": 9, "a1": 1, "a2": 2}, UNDECIDED),
]


@pytest.mark.parametrize(("table", "levels", "expected"), CASES)
def test_each_kind_of_claim_has_each_verdict(table, levels, expected) -> None:
    found = verdict_on(made_up(**levels), **table)
    assert found.verdict == expected
    assert [entry.verdict for entry in found.evidence] == [expected]
    assert bool(found.why) == (expected == UNDECIDED)
    assert found.by_median == ""
    for entry in found.evidence:
        assert entry.median is None
        assert not entry.low > entry.mean, "the mean is inside its interval"
        assert not entry.high < entry.mean, "the mean is inside its interval"


def test_no_kind_and_no_verdict_is_left_out() -> None:
    seen = {(kind, verdict) for table, _, verdict in CASES for kind in KINDS if kind in table}
    kinds = [kind for kind in KINDS if kind != "counterexample"]
    assert seen == {(kind, verdict) for kind in kinds for verdict in (HOLDS, FAILS, UNDECIDED)}


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"a": 1, "b": 1, "c": 2, "d": 2}, HOLDS),
        ({"a": 1, "b": 1, "c": 2, "d": 1}, UNDECIDED),
        ({"a": 1, "b": 2, "c": 2, "d": 2}, UNDECIDED),
        ({"a": 1, "b": 1, "c": 2, "d": 0.5}, FAILS),
        ({"a": 1, "b": 2, "c": 2, "d": 1}, FAILS),
    ],
)
def test_a_claim_about_several_holds_only_if_all_do(levels, expected) -> None:
    found = verdict_on(made_up(**levels), lower=["a", "b"], higher=["c", "d"])
    assert {entry.what for entry in found.evidence} == {"c - a", "d - a", "c - b", "d - b"}
    assert found.verdict == expected
    assert found.evidence[0].verdict == expected


@pytest.mark.parametrize(
    ("table", "levels", "expected"),
    [
        ({"lower": "a", "higher": ["b", "c", "d"]}, {"b": 3, "c": 2, "d": 4}, "c - a"),
        ({"lower": "a", "higher": ["b", "c", "d"]}, {"b": 0.8, "c": 2, "d": 0.5}, "d - a"),
        ({"lower": "a", "higher": ["b", "c", "d"]}, {"b": 2, "c": 1, "d": 3}, "c - a"),
        ({"near": ["b", "c", "d"], "to": "a", "factor": 9}, {"b": 2, "c": 3, "d": 1}, "c / a"),
        ({"falls": ["b", "c"]}, {"b": 4 - SHARE, "c": 4 - 3 * SHARE}, "b: "),
        ({"rises": ["b", "c"]}, {"b": 3 * SHARE, "c": 2 * SHARE}, "c: "),
        ({"levels_off": ["b", "c"]}, {"b": SHARE, "c": 4 - 3 * SHARE}, "c: "),
        ({"keeps_growing": ["b", "c"]}, {"b": SHARE, "c": 1 + SHARE}, "c: "),
    ],
)
def test_the_evidence_begins_with_what_decides(table, levels, expected: str) -> None:
    found = verdict_on(made_up(a=1, **levels), **table)
    assert found.evidence[0].what.startswith(expected)
    assert found.evidence[0].verdict == found.verdict
    assert deciding(found.as_json()).startswith(expected)


def test_what_decides_is_told_in_a_line() -> None:
    curves = made_up(0, a=1, b=3, c=2)
    found = verdict_on(curves, lower="a", higher=["b", "c"])
    assert deciding(found.as_json()) == "c - a: 1, and 1 more"
    noisy = verdict_on(made_up(0.5, a=10, b=30), lower="a", higher="b")
    assert deciding(noisy.as_json()) == "b - a: 20 (19.8 to 20.2)"
    doubtful = {"what": "a / b", "mean": 9.0, "low": 3.0, "high": None, "verdict": FAILS}
    found = {"verdict": FAILS, "evidence": [doubtful], "why": ""}
    assert deciding(found) == "a / b: 9 (above 3)"
    late = verdict_on(curves, lower="a", higher="b", at=500)
    assert "500 pulls" in deciding(late.as_json())


def test_every_other_policy_is_every_rival_in_each_environment() -> None:
    experiment = experiment_from(
        "rivals",
        {
            "title": "Rivals",
            "environments": {"x": "rotting", "y": "bernoulli"},
            "policies": {"a": "ucb", "b": "swa", "c": "uniform"},
            "tuning": {"a": {"scale": [0.3]}, "b": {"alpha": [0.1]}},
            "claims": [
                {
                    "text": "A is best.",
                    "lower": "a",
                    "higher": "every other policy",
                    "on": "every environment",
                }
            ],
        },
    )
    worlds = {
        "x": {"a": 2, "a tuned": 1, "b": 4, "b tuned": 3, "c": 5},
        "y": {"a": 2, "a tuned": 1, "b": 4, "b tuned": 1.5, "c": 5},
    }
    levels = {f"{name} on {x}": v for x, world in worlds.items() for name, v in world.items()}
    curves = made_up(**levels)
    first, second = (judge(claim, curves) for claim in experiment.parsed_claims())
    assert (first.claim.text, first.verdict) == ("A is best on x.", HOLDS)
    assert (second.claim.text, second.verdict) == ("A is best on y.", FAILS)
    assert [entry.what for entry in first.evidence] == [
        "b tuned on x - a on x", "b on x - a on x", "c on x - a on x",
    ]  # fmt: skip
    assert second.evidence[0].what == "b tuned on y - a on y"


@pytest.mark.parametrize("kind", ["falls", "rises", "levels_off", "keeps_growing"])
def test_a_shape_of_several_lines_is_judged_for_each(kind: str) -> None:
    found = verdict_on(made_up(a=SHARE, b=FLAT, c=2 - SHARE), **{kind: ["a", "b", "c"]})
    assert len(found.evidence) == 3
    assert {entry.verdict for entry in found.evidence} >= {HOLDS, FAILS}
    assert found.verdict == FAILS


def test_pairing_decides_what_the_worlds_would_hide() -> None:
    generator = np.random.default_rng(3)
    world = generator.normal(20, 10, (30, 1))
    a = world + generator.normal(0, 0.1, (30, 10))
    b = world + 0.2 + generator.normal(0, 0.1, (30, 10))
    alone = estimate(a[:, -1]), estimate(b[:, -1])
    assert alone[0].high > alone[1].low, "the intervals overlap"
    assert verdict_on(Curves(TIMES, {"a": a, "b": b}, {}), lower="a", higher="b").verdict == HOLDS
    strangers = Curves(TIMES, {"a": a, "b": b[::-1]}, {})
    assert verdict_on(strangers, lower="a", higher="b").verdict == UNDECIDED


def test_the_difference_is_what_a_textbook_says() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.normal(5, 2, (400, 10)), generator.normal(9, 3, (400, 10))
    found = verdict_on(Curves(TIMES, {"a": a, "b": b}, {}), lower="a", higher="b", factor=1.5)
    difference = b[:, -1] - 1.5 * a[:, -1]
    error = difference.std() / 20
    (entry,) = found.evidence
    assert entry.what == "b - 1.5 x a"
    assert entry.mean == pytest.approx(difference.mean())
    assert entry.low == pytest.approx(difference.mean() - 1.96 * error, abs=0.2 * error)
    assert entry.high == pytest.approx(difference.mean() + 1.96 * error, abs=0.2 * error)


@pytest.mark.parametrize(
    ("table", "effect", "times"),
    [
        ({"near": "a", "to": "b", "factor": 2}, lambda a, b: a / b, (-1, -1)),
        ({"falls": "b"}, lambda start, end: end - start, (0, -1)),
        ({"rises": "b"}, lambda start, end: end - start, (0, -1)),
        ({"keeps_growing": "b"}, lambda middle, end: (end - middle) / end, (4, -1)),
        ({"levels_off": "b"}, lambda middle, end: (end - middle) / end, (4, -1)),
    ],
)
def test_other_effects_are_what_another_bootstrap_says(table, effect, times) -> None:
    generator = np.random.default_rng(5)
    a = generator.gamma(4.0, 1.0, (60, 10))
    b = a + np.cumsum(generator.gamma(2.0, 1.0, (60, 10)), axis=1)
    (entry,) = verdict_on(Curves(TIMES, {"a": a, "b": b}, {}), **table).evidence
    first, second = (a if "near" in table else b)[:, times[0]], b[:, times[1]]
    low, high = bootstrap(effect, first, second)
    assert entry.mean == pytest.approx(effect(first.mean(), second.mean()))
    assert entry.low == pytest.approx(low, abs=0.08 * (high - low))
    assert entry.high == pytest.approx(high, abs=0.08 * (high - low))


def test_stable_is_about_the_pair_that_differs_most() -> None:
    """Its low end is farther out than a bootstrap's, which takes the largest for what it is."""
    generator = np.random.default_rng(6)
    values = {f"a{i}": generator.gamma(4.0 + 2 * i, 1.0, (60, 10)) for i in range(3)}
    (entry,) = verdict_on(Curves(TIMES, values, SWEEP), stable="a", factor=3).evidence
    last = [line[:, -1] for line in values.values()]
    low, high = bootstrap(lambda *means: max(means) / min(means), *last)
    assert "0.0, 0.1, 1.0" in entry.what
    assert entry.mean == pytest.approx(last[2].mean() / last[0].mean())
    assert entry.high == pytest.approx(high, abs=0.1 * (high - low))
    assert low - 0.4 * (high - low) < entry.low < low


def test_one_setting_is_stable() -> None:
    curves = made_up(a0=1)._replace(sweeps={"a": {0.0: "a0"}})
    (entry,) = verdict_on(curves, stable="a", factor=2).evidence
    assert entry[1:5] == (1, 1, 1, HOLDS)


@pytest.mark.parametrize("skewed", [False, True])
def test_settings_that_are_stable_are_seldom_refused(skewed: bool) -> None:
    """A true ratio of 1.9 against a factor of 2, where several settings are alike."""
    values = sweeps(np.random.default_rng(8), LAYOUTS["5 settings"], 1.9, 20, skewed)[:200]
    before = [bootstrapped_ratio(experiment, 2.0) for experiment in values]
    assert before.count(FAILS) > 20, "that the test can fail"
    assert [paired_ratios(experiment, 2.0) for experiment in values].count(FAILS) <= 10


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({}, 100),
        ({"at": 30}, 30),
        ({"at": 0.3}, 30),
        ({"at": 39}, 30),
        ({"at": 1}, 10),
        ({"at": 1.0}, 100),
        ({"at": 100}, 100),
        ({"over": [20, 40]}, 30),
        ({"over": [0.2, 0.4]}, 30),
        ({"over": [20, 0.4]}, 30),
        ({"over": [0, 50]}, 30),
        ({"over": [0.0, 1.0]}, 55),
        ({"over": [31, 34]}, 30),
        ({"over": [0, 1]}, 10),
    ],
)
def test_a_comparison_is_at_its_time(when, expected) -> None:
    """The line is worth its own time."""
    (entry,) = verdict_on(made_up(0, a=TIMES, b=1), near="a", to="b", factor=2, **when).evidence
    assert [entry.mean, entry.low, entry.high] == pytest.approx([expected] * 3)


def test_stable_is_at_its_time() -> None:
    curves = made_up(0, a0=TIMES, a1=FLAT, a2=FLAT)
    for when, expected in [({"at": 0.3}, 30), ({"over": [20, 60]}, 40), ({}, 100)]:
        assert verdict_on(curves, stable="a", factor=2, **when).evidence[0].mean == expected


@pytest.mark.parametrize(
    ("when", "change", "growth"),
    [
        ({}, 90, 0.5),
        ({"over": [0.0, 1.0]}, 90, 0.5),
        ({"over": [20, 60]}, 40, 1 / 3),
        ({"over": [0.2, 0.6]}, 40, 1 / 3),
        ({"over": [0.5, 1.0]}, 50, 0.3),
        ({"over": [0, 20]}, 10, 0.5),
    ],
)
def test_a_shape_is_over_its_span(when, change, growth) -> None:
    curves = made_up(0, a=TIMES)
    for kind in ("falls", "rises"):
        assert verdict_on(curves, **{kind: "a"}, **when).evidence[0].mean == pytest.approx(change)
    for kind in ("levels_off", "keeps_growing"):
        assert verdict_on(curves, **{kind: "a"}, **when).evidence[0].mean == pytest.approx(growth)


@pytest.mark.parametrize(
    ("when", "pulls"), [({"at": 101}, 101), ({"over": [50, 200]}, 200), ({"at": 1.5}, 150)]
)
def test_a_time_beyond_the_horizon_is_undecided(when, pulls) -> None:
    found = verdict_on(made_up(a=1, b=2), lower="a", higher="b", **when)
    assert found.verdict == UNDECIDED
    assert found.evidence == []
    assert f"{pulls} pulls" in found.why
    assert "end after 100" in found.why


@pytest.mark.parametrize(("table", "levels"), [case[:2] for case in CASES if case[2] == HOLDS])
def test_one_run_decides_nothing(table, levels) -> None:
    found = verdict_on(made_up(runs=1, **levels), **table)
    assert found.verdict == UNDECIDED
    assert "one run" in found.why
    entry = found.as_json()["evidence"][0]
    assert entry["low"] is entry["high"] is None
    assert isinstance(entry["mean"], float)


@pytest.mark.parametrize(("table", "levels", "expected"), CASES)
def test_a_verdict_is_json(table, levels, expected) -> None:
    table = {**table, "section": "4", "reading": "As it says."}
    found = verdict_on(made_up(**levels), **table).as_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["text"] == "It is so."
    assert found["section"] == "4"
    assert found["reading"] == "As it says."
    assert found["kind"] in table
    assert found["verdict"] == expected


@pytest.mark.parametrize("level", [0, 1])
def test_a_comparison_with_nothing_is_undecided_and_json(level: int) -> None:
    """The oracle's regret is 0 in every run, and a ratio to it is no number."""
    found = verdict_on(made_up(0, a=level, b=0), near="a", to="b", factor=2)
    assert found.verdict == UNDECIDED
    json.dumps(found.as_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("table", "levels"),
    [
        ({"near": "a", "to": "b", "factor": 2}, {"a": 50, "b": -1}),
        ({"stable": "a", "factor": 2}, {"a0": 50, "a1": -1, "a2": 1}),
        ({"keeps_growing": "a"}, {"a": -SHARE}),
    ],
)
def test_a_share_of_something_negative_does_not_hold(table, levels) -> None:
    """A policy regret can be below 0: 50 is not near -1, and what falls does not grow."""
    assert verdict_on(made_up(**levels), **table).verdict != HOLDS


@pytest.mark.parametrize("over", [[0.8, 0.2], [80, 20], [0.5, 1], [50, 0.1]])
def test_a_span_that_goes_backward_decides_nothing(over) -> None:
    found = verdict_on(made_up(a=2 - SHARE), falls="a", over=over)
    assert found.verdict == UNDECIDED
    assert "span is empty" in found.why


@pytest.mark.parametrize("runs", [2, 4, 10])
def test_few_runs_decide_wrongly_only_seldom(runs: int) -> None:
    """Two policies with equally distributed results: about one verdict in twenty is decided."""
    generator = np.random.default_rng(0)
    decided = 0
    for _ in range(300):
        values = {label: generator.normal(1, 0.3, (runs, 1)) for label in "ab"}
        curves = Curves(np.array([100]), values, {})
        decided += verdict_on(curves, lower="a", higher="b").verdict != UNDECIDED
    assert decided / 300 < 0.1


def test_many_rivals_refute_a_claim_only_seldom() -> None:
    """Thirty rivals that are all equal: without correction they refuted every third claim."""
    generator = np.random.default_rng(1)
    names, refuted, uncorrected = [f"r{k}" for k in range(30)], 0, 0
    for _ in range(200):
        values = {label: generator.normal(1, 0.3, (20, 1)) for label in ["a", *names]}
        curves = Curves(np.array([100]), values, {})
        table = {"text": "It is so.", "lower": "a", "higher": names}
        refuted += judge(parse_claim(table, list(values), []), curves).verdict == FAILS
        highs = [estimate(values[name] - values["a"]).high[0] for name in names]
        uncorrected += min(highs) < 0
    assert uncorrected > 30, "that the test can fail"
    assert refuted <= 10


def test_only_the_end_that_can_refute_is_corrected() -> None:
    curves = made_up(a=1, b=2, c=2)
    (alone,) = verdict_on(curves, lower="a", higher="b").evidence
    _, entry = sorted(verdict_on(curves, lower="a", higher=["b", "c"]).evidence, reverse=True)
    assert entry.what == alone.what == "b - a"
    assert entry.low == alone.low
    assert entry.high > alone.high
