"""What the runs say of a claim: it holds, it does not hold, or it is undecided.

Every verdict comes from an effect that the claim says is above 0 (or inside a range), estimated
from paired runs with a 95% interval (see `intervals`): it holds if the whole interval agrees, it
does not hold if the whole interval disagrees, and is undecided otherwise. A claim about several
policies is judged for each; it holds if all do, and does not hold if one does not. The more there
are, the sooner one of them seems to refute the claim by chance, so the end of an interval that can
refute it is at a level corrected for their number (Bonferroni). That all of them agree by chance is
no likelier than that one does, so the other end needs no correction. The evidence begins with what
decides: what is most against the claim.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from driftbandits.experiments.claims import Claim, goes_forward, pulls
from driftbandits.experiments.intervals import (
    TAIL,
    interval_of_mean,
    interval_of_ratio,
    ratio_of_means,
)

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


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


def judge(claim: Claim, curves: Curves) -> Verdict:
    """What the runs say of a claim."""
    latest = pulls(claim.span[1], curves.horizon) if claim.span else curves.horizon
    if latest > curves.horizon:
        why = f"it is about {latest} pulls, and the runs end after {curves.horizon}"
        return Verdict(claim, UNDECIDED, [], why)
    if not goes_forward(claim, curves.horizon):
        return Verdict(claim, UNDECIDED, [], f"its span is empty within {curves.horizon} pulls")
    evidence = sorted(JUDGES[claim.kind](claim, curves), key=partial(support, claim.kind))
    found = {entry.verdict for entry in evidence}
    verdict = FAILS if FAILS in found else UNDECIDED if UNDECIDED in found else HOLDS
    runs = len(next(iter(curves.values.values())))
    return Verdict(claim, verdict, evidence, "one run has no interval" if runs < 2 else "")


def support(kind: str, entry: Evidence) -> tuple[int, float]:
    """The less, the more an entry is against a claim: by its verdict, then by its mean."""
    speaks = SUPPORT[kind](entry.mean)
    return [FAILS, UNDECIDED, HOLDS].index(entry.verdict), -np.inf if np.isnan(speaks) else speaks


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


def difference(what: str, values: np.ndarray, count: int) -> Evidence:
    """Judges a number per run whose mean should be above 0, one of so many comparisons."""
    values = np.asarray(values, float)
    tails = corrected_tails(0.0, np.inf, count)
    ends = interval_of_mean(values, *tails) if len(values) > 1 else (np.nan, np.nan)
    return inside_range(what, values.mean(axis=0), ends, 0.0, np.inf)


def ratio(
    what: str, part: np.ndarray, total: np.ndarray, low: float, high: float, count: int
) -> Evidence:
    """Judges whether the mean of one number per run over that of another is inside a range."""
    part, total = np.asarray(part, float), np.asarray(total, float)
    tails = corrected_tails(low, high, count)
    ends = interval_of_ratio(part, total, *tails) if len(part) > 1 else (np.nan, np.nan)
    return inside_range(what, ratio_of_means(part, total), ends, low, high)


def corrected_tails(low: float, high: float, count: int) -> tuple[float, float]:
    """Of the low and the high end, for a claim that an effect is between `low` and `high`.

    A low end above `high`, or a high end below `low`, refutes the claim.
    """
    return (
        TAIL / count if np.isfinite(high) else TAIL,
        TAIL / count if np.isfinite(low) else TAIL,
    )


def inside_range(what: str, mean: Any, ends: tuple[Any, Any], low: float, high: float) -> Evidence:
    """Judges whether an effect lies between two numbers; undecided where it has no interval."""
    lowest, highest = (float(end) for end in ends)
    if low < lowest and highest < high:
        verdict = HOLDS
    elif highest < low or lowest > high:
        verdict = FAILS
    else:
        verdict = UNDECIDED
    return Evidence(what, float(mean), lowest, highest, verdict)


def judge_lower(claim: Claim, curves: Curves) -> list[Evidence]:
    times = "" if claim.factor == 1 else f"{claim.factor:g} x "
    return [
        difference(
            f"{other} - {times}{name}",
            value_at(claim, curves, other) - claim.factor * value_at(claim, curves, name),
            len(claim.names) * len(claim.others),
        )
        for name in claim.names
        for other in claim.others
    ]


def judge_near(claim: Claim, curves: Curves) -> list[Evidence]:
    return [
        ratio(
            f"{name} / {other}",
            value_at(claim, curves, name),
            value_at(claim, curves, other),
            -np.inf,
            claim.factor,
            len(claim.names) * len(claim.others),
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
        change = difference(name, sign * (end - start), len(claim.names))
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
            ratio(
                f"{name}: growth over the second half / final value",
                end - middle,
                end,
                low,
                high,
                len(claim.names),
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
        stacked = np.stack(values, axis=-1).astype(float)
        found.append(largest_ratio(what, stacked, claim.factor, len(claim.names)))
    return found


def largest_ratio(what: str, values: np.ndarray, factor: float, count: int) -> Evidence:
    """Judges whether the largest of several means over the smallest is below a factor.

    The largest and the smallest of the runs' means are farther apart than those of the true ones,
    so their ratio is too high. But the true ratio is the highest one of all pairs: it is above the
    low end of each, at levels corrected for their number, and below the highest of the high ends.
    """
    ends = np.nan, np.nan
    if len(values) > 1:
        lines = values.shape[1]
        first, second = (indices.ravel() for indices in np.indices((lines, lines)))
        low_tail = TAIL / max(lines * (lines - 1), 1) / count
        low, high = interval_of_ratio(values[:, first], values[:, second], low_tail)
        ends = low.max(), high.max()
    return inside_range(what, spread_of(values.mean(axis=0)), ends, -np.inf, factor)


def spread_of(means: np.ndarray) -> float:
    """Largest over smallest; NaN where that is not above 0."""
    smallest = means.min()
    return float(means.max() / smallest) if smallest > 0 else np.nan


JUDGES: dict[str, Callable[[Claim, Curves], list[Evidence]]] = {
    "lower": judge_lower,
    "near": judge_near,
    "falls": judge_change,
    "rises": judge_change,
    "levels_off": judge_growth,
    "keeps_growing": judge_growth,
    "stable": judge_stable,
}
SUPPORT: dict[str, Callable[[float], float]] = {  # grows with what speaks for the claim
    "lower": lambda effect: effect,
    "near": lambda ratio: -ratio,
    "falls": lambda change: -change,
    "rises": lambda change: change,
    "levels_off": lambda growth: -abs(growth),
    "keeps_growing": lambda growth: growth,
    "stable": lambda ratio: -ratio,
}
