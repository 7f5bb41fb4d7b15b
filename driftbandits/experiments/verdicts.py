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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from driftbandits.experiments.claims import Claim, goes_forward, pulls
from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED, Range
from driftbandits.experiments.evidence import (
    Evidence,
    difference,
    largest_ratio,
    mirrored,
    ratio,
)
from driftbandits.experiments.more_runs import needed_text


class Curves(NamedTuple):
    """The data that claims are judged by: the measure of every line in the same worlds."""

    times: np.ndarray  # (points,)
    values: Mapping[str, np.ndarray]  # label: (runs, points)
    sweeps: Mapping[str, Mapping[Any, str]]  # policy's name: swept value -> label
    choosing: int = 0  # runs beside these, which chose tuned settings

    @property
    def runs(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def horizon(self) -> int:
        return int(self.times[-1])


class Verdict(NamedTuple):
    claim: Claim
    verdict: str
    evidence: list[Evidence]
    why: str = ""  # it is undecided, and what would decide it
    by_median: str = ""  # where that is another verdict

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.claim.text,
            "section": self.claim.section,
            "reading": self.claim.reading,
            "kind": self.claim.kind,
            "verdict": self.verdict,
            "by_median": self.by_median,
            "why": self.why,
            "evidence": [entry.as_json() for entry in self.evidence],
        }


def judge(claim: Claim, curves: Curves) -> Verdict:
    """Judges a claim by the runs."""
    latest = pulls(claim.span[1], curves.horizon) if claim.span else curves.horizon
    if latest > curves.horizon:
        why = f"it is about {latest} pulls, and the runs end after {curves.horizon}"
        return Verdict(claim, UNDECIDED, [], why)
    if not goes_forward(claim, curves.horizon):
        return Verdict(claim, UNDECIDED, [], f"its span is empty within {curves.horizon} pulls")
    evidence = sorted(JUDGES[claim.kind](claim, curves), key=partial(support, claim.kind))
    verdict = verdict_of_all(entry.verdict for entry in evidence)
    by_median = verdict_of_all(
        entry.median.verdict if entry.median else entry.verdict for entry in evidence
    )
    why = what_would_decide(evidence, curves) if verdict == UNDECIDED else ""
    return Verdict(claim, verdict, evidence, why, by_median if by_median != verdict else "")


def verdict_of_all(verdicts: Iterable[str]) -> str:
    """The verdict on a claim, from the verdicts on each of its comparisons."""
    found = set(verdicts)
    return FAILS if FAILS in found else UNDECIDED if UNDECIDED in found else HOLDS


def what_would_decide(evidence: Sequence[Evidence], curves: Curves) -> str:
    """One comparison against the claim refutes it; otherwise all of them have to agree."""
    if curves.runs < 2:
        return "one run has no interval"
    against = [entry.runs_needed for entry in evidence if entry.leans == FAILS]
    open_ones = [entry.runs_needed for entry in evidence if entry.verdict == UNDECIDED]
    needed = float(np.nanmin(against)) if np.isfinite(against).any() else float(np.max(open_ones))
    everything = curves.runs + curves.choosing
    return needed_text(needed * everything / curves.runs, everything)


def support(kind: str, entry: Evidence) -> tuple[int, float]:
    """A sort key: the lower, the more an entry speaks against the claim."""
    speaks = SUPPORT[kind](entry.mean)
    return [FAILS, UNDECIDED, HOLDS].index(entry.verdict), -np.inf if np.isnan(speaks) else speaks


def value_at(claim: Claim, curves: Curves, label: str) -> np.ndarray:
    """A number per run: at the claim's time, its mean over the claim's span, or at the horizon."""
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
            {f"the mean of {label}": value_at(claim, curves, label) for label in (name, other)},
            Range(-np.inf, claim.factor),
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
    found = []
    for name in claim.names:
        start, _, end = shape_points(claim, curves, name)
        what, count = f"{name}: change over the span", len(claim.names)
        if claim.kind == "rises":
            found.append(difference(what, end - start, count, "the changes"))
        else:
            found.append(mirrored(difference(what, start - end, count, "the changes")))
    return found


def judge_growth(claim: Claim, curves: Curves) -> list[Evidence]:
    level = claim.kind == "levels_off"
    limit = claim.tolerance
    found = []
    for name in claim.names:
        _, middle, end = shape_points(claim, curves, name)
        found.append(
            ratio(
                f"{name}: growth over the second half / final value",
                {"the growth": end - middle, "the final value": end},
                Range(-limit, limit) if level else Range(limit, np.inf),
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
        means = {f"the mean of {x}": value_at(claim, curves, x) for x in labels.values()}
        what = f"{name}: largest mean / smallest, over {', '.join(map(str, labels))}"
        found.append(largest_ratio(what, means, claim.factor, len(claim.names)))
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
SUPPORT: dict[str, Callable[[float], float]] = {  # grows with what speaks for the claim
    "lower": lambda effect: effect,
    "near": lambda ratio: -ratio,
    "falls": lambda change: -change,
    "rises": lambda change: change,
    "levels_off": lambda growth: -abs(growth),
    "keeps_growing": lambda growth: growth,
    "stable": lambda ratio: -ratio,
}
