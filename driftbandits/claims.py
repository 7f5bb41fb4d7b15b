"""Claims about curves, and what the runs say of them: holds, does not hold, undecided.

Every verdict comes from an effect that the claim says is above 0 (or inside a range), estimated
from paired runs with a 95% bootstrap interval: it holds if the whole interval agrees, it does not
hold if the whole interval disagrees, and is undecided otherwise. A claim about several policies is
judged for each; it holds if all do, and does not hold if one does not.

    lower = "a", higher = "b" or ["b", "c"]     mean of b - factor * a is above 0   (factor 1)
    near = "a", to = "b", factor = 2            mean of a / mean of b is below factor
    falls, rises = "a" or ["a", "b"]            change from the span's start to its end
    levels_off, keeps_growing = ...             growth over the second half of the span, as a share
                                                of the final value, against `tolerance` (0.1)
    stable = "a", factor = 2                    largest mean over smallest mean in a sweep

`at` is a time, `over` a span: [from, to]. Whole numbers are pulls, fractions are of the horizon.
A comparison without either is at the horizon, a shape without is over everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.metrics import interval, resampled_means

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
COMPARISONS = ["lower", "near"]
SHAPES = ["falls", "rises", "levels_off", "keeps_growing"]
KINDS = [*COMPARISONS, *SHAPES, "stable", "counterexample"]
COMMON = ["text", "section", "reading"]
ALSO = {
    "lower": ["higher", "factor", "at", "over"],
    "near": ["to", "factor", "at", "over"],
    "falls": ["over"],
    "rises": ["over"],
    "levels_off": ["over", "tolerance"],
    "keeps_growing": ["over", "tolerance"],
    "stable": ["factor", "at", "over", "values"],
    "counterexample": [],
}


@dataclass(frozen=True)
class Claim:
    kind: str
    text: str
    names: tuple[str, ...]  # whom it is about
    others: tuple[str, ...] = ()  # whom they are compared with
    section: str = ""
    reading: str = ""
    factor: float = 1.0
    tolerance: float = 0.1
    span: tuple[float, float] | None = None
    values: tuple[Any, ...] | None = None  # of the sweep; None is all of them


class Curves(NamedTuple):
    """What claims are judged by: the measure of every line in the same worlds."""

    times: np.ndarray  # (points,)
    values: Mapping[str, np.ndarray]  # label: (runs, points)
    sweeps: Mapping[str, Mapping[Any, str]]  # policy's name: swept value -> label

    @property
    def horizon(self) -> int:
        return int(self.times[-1])


class Evidence(NamedTuple):
    """One number behind a verdict, with its interval."""

    what: str
    mean: float
    low: float
    high: float
    verdict: str


class Verdict(NamedTuple):
    claim: Claim
    verdict: str
    evidence: list[Evidence]
    why: str = ""  # where there is no evidence

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.claim.text,
            "section": self.claim.section,
            "reading": self.claim.reading,
            "kind": self.claim.kind,
            "verdict": self.verdict,
            "why": self.why,
            "evidence": [
                {
                    k: v if isinstance(v, str) or np.isfinite(v) else None
                    for k, v in e._asdict().items()
                }
                for e in self.evidence
            ],
        }


def parse_claim(table: Mapping[str, Any], labels: Sequence[str], swept: Sequence[str]) -> Claim:
    """Reads one claim; `labels` are the lines, `swept` the policies of a sweep."""
    kind = kind_of(table)
    for key in table:
        check.known(f"key of a claim with {kind!r}", key, [*COMMON, kind, *ALSO[kind]])
    for key in COMMON:
        if not isinstance(table.get(key, ""), str) or (key == "text" and not table.get(key)):
            check.fail(key, "text", table.get(key))
    others = {"lower": "higher", "near": "to"}.get(kind)
    known = {"stable": swept, "counterexample": ["ratio_bound"]}.get(kind, labels)
    for key, default in (("factor", 1.0), ("tolerance", 0.1)):
        check.positive(**{key: table.get(key, default)})
    if kind in ("near", "stable") and "factor" not in table:
        check.fail("factor", f"given with {kind!r}", None)
    values = table.get("values")
    if values is not None and not isinstance(values, list):
        check.fail("values", "a list of swept values", values)
    return Claim(
        kind,
        table["text"],
        names_in(kind, table[kind], known),
        names_in(others, table.get(others), known) if others else (),
        table.get("section", ""),
        table.get("reading", ""),
        float(table.get("factor", 1)),
        float(table.get("tolerance", 0.1)),
        span_of(table),
        None if values is None else tuple(values),
    )


def kind_of(table: Mapping[str, Any]) -> str:
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1:
        check.fail("a claim", f"of one kind: {', '.join(KINDS)}", sorted(table))
    return kinds[0]


def names_in(key: str, value: Any, known: Sequence[str]) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        check.fail(key, "the name of a policy, or a list of names", value)
    for name in names:
        check.known(key, name, known)
    return tuple(names)


def span_of(table: Mapping[str, Any]) -> tuple[float, float] | None:
    if "at" in table and "over" in table:
        check.fail("at", "left out where there is `over`", table["at"])
    if "at" in table:
        check.positive(at=table["at"])
        return table["at"], table["at"]
    if "over" not in table:
        return None
    span = table["over"]
    if not isinstance(span, list) or len(span) != 2:
        check.fail("over", "a span [from, to]", span)
    check.not_negative(over=span[0])
    check.positive(over=span[1])
    if type(span[0]) is type(span[1]) and span[0] >= span[1]:
        check.fail("over", "a span [from, to] that goes forward", span)
    return span[0], span[1]


def judge(claim: Claim, curves: Curves) -> Verdict:
    """What the runs say of a claim."""
    latest = pulls(claim.span[1], curves.horizon) if claim.span else curves.horizon
    if latest > curves.horizon:
        why = f"it is about {latest} pulls, and the runs end after {curves.horizon}"
        return Verdict(claim, UNDECIDED, [], why)
    evidence = JUDGES[claim.kind](claim, curves)
    found = {entry.verdict for entry in evidence}
    verdict = FAILS if FAILS in found else UNDECIDED if UNDECIDED in found else HOLDS
    runs = len(next(iter(curves.values.values())))
    return Verdict(claim, verdict, evidence, "one run has no interval" if runs < 2 else "")


def pulls(time: float, horizon: int) -> int:
    """A fraction is of the horizon; a whole number is pulls."""
    return time if isinstance(time, int) else round(time * horizon)


def value_at(claim: Claim, curves: Curves, label: str) -> np.ndarray:
    """A number per run: at the claim's time, or the mean over its span; else at the horizon."""
    if claim.span is None:
        return curves.values[label][:, -1]
    first, last = (pulls(time, curves.horizon) for time in claim.span)
    inside = (curves.times >= first) & (curves.times <= last)
    if not inside.any() or first == last:
        return curves.values[label][:, index_of(curves.times, last)]
    return curves.values[label][:, inside].mean(axis=1)


def index_of(times: np.ndarray, time: int) -> int:
    """The last recorded time that is not later."""
    return max(int(np.searchsorted(times, time, side="right")) - 1, 0)


def above(what: str, effect: Callable[[np.ndarray], Any], *values: np.ndarray) -> Evidence:
    """Judges an effect, a function of the means of several lines, that should be above 0."""
    return inside_range(what, effect, 0.0, np.inf, *values)


def inside_range(
    what: str,
    effect: Callable[[np.ndarray], Any],
    low: float,
    high: float,
    *values: np.ndarray,
) -> Evidence:
    """Judges whether an effect lies between two numbers. `effect` takes means: (..., lines)."""
    stacked = np.stack(values, axis=-1).astype(float)  # (runs, lines)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = float(effect(stacked.mean(axis=0)))
        if len(stacked) < 2:
            return Evidence(what, mean, np.nan, np.nan, UNDECIDED)
        resampled = np.asarray(effect(resampled_means(stacked)), float)
    if not np.isfinite(resampled).all():
        return Evidence(what, mean, np.nan, np.nan, UNDECIDED)
    lowest, highest = (float(end) for end in interval(resampled))
    if low < lowest and highest < high:
        verdict = HOLDS
    elif highest < low or lowest > high:
        verdict = FAILS
    else:
        verdict = UNDECIDED
    return Evidence(what, mean, lowest, highest, verdict)


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """A ratio, which says nothing (NaN) where what it is a share of is not above 0."""
    return np.where(whole > 0, part / whole, np.nan)


def judge_lower(claim: Claim, curves: Curves) -> list[Evidence]:
    times = "" if claim.factor == 1 else f"{claim.factor:g} x "
    return [
        above(
            f"{other} - {times}{name}",
            lambda means: means[..., 1] - claim.factor * means[..., 0],
            value_at(claim, curves, name),
            value_at(claim, curves, other),
        )
        for name in claim.names
        for other in claim.others
    ]


def judge_near(claim: Claim, curves: Curves) -> list[Evidence]:
    return [
        inside_range(
            f"{name} / {other}",
            lambda means: share(means[..., 0], means[..., 1]),
            -np.inf,
            claim.factor,
            value_at(claim, curves, name),
            value_at(claim, curves, other),
        )
        for name in claim.names
        for other in claim.others
    ]


def shape_points(claim: Claim, curves: Curves, label: str) -> tuple[np.ndarray, ...]:
    """The values at the start, the middle and the end of the span."""
    first, last = (pulls(t, curves.horizon) for t in claim.span or (0.0, 1.0))
    values = curves.values[label]
    return tuple(
        values[:, index_of(curves.times, time)] for time in (first, (first + last) // 2, last)
    )


def judge_change(claim: Claim, curves: Curves) -> list[Evidence]:
    sign = 1 if claim.kind == "rises" else -1
    found = []
    for name in claim.names:
        start, _, end = shape_points(claim, curves, name)
        change = above(name, lambda means: sign * (means[..., 1] - means[..., 0]), start, end)
        low, high = sorted([sign * change.low, sign * change.high])
        what = f"{name}: change over the span"
        found.append(Evidence(what, sign * change.mean, low, high, change.verdict))
    return found


def judge_growth(claim: Claim, curves: Curves) -> list[Evidence]:
    level = claim.kind == "levels_off"
    low, high = (-claim.tolerance, claim.tolerance) if level else (claim.tolerance, np.inf)
    found = []
    for name in claim.names:
        _, middle, end = shape_points(claim, curves, name)
        found.append(
            inside_range(
                f"{name}: growth over the second half / final value",
                lambda means: share(means[..., 1] - means[..., 0], means[..., 1]),
                low,
                high,
                middle,
                end,
            )
        )
    return found


def judge_stable(claim: Claim, curves: Curves) -> list[Evidence]:
    found = []
    for name in claim.names:
        labels = {
            value: label
            for value, label in curves.sweeps[name].items()
            if claim.values is None or value in claim.values
        }
        values = [value_at(claim, curves, label) for label in labels.values()]
        what = f"{name}: largest mean / smallest, over {', '.join(map(str, labels))}"
        found.append(
            inside_range(
                what,
                lambda means: share(means.max(-1), means.min(-1)),
                -np.inf,
                claim.factor,
                *values,
            )
        )
    return found


JUDGES: dict[str, Callable[[Claim, Curves], list[Evidence]]] = {
    "lower": judge_lower,
    "near": judge_near,
    "falls": judge_change,
    "rises": judge_change,
    "levels_off": judge_growth,
    "keeps_growing": judge_growth,
    "stable": judge_stable,
}
