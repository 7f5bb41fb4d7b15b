"""Verdicts and their evidence in words, from the dictionaries of claims.json.

Dictionaries of older versions lack some keys.
"""

from collections.abc import Mapping
from typing import Any

from driftbandits.experiments.few_runs import FewRuns, few_runs_text
from driftbandits.report.style import number


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def value_text(value: float | None) -> str:
    return "no number" if value is None else number(value)


def interval_text(low: float | None, high: float | None) -> str:
    """An interval in brackets; empty if there is none or it has no width."""
    if low == high:
        return ""
    if low is None or high is None:
        return f" (below {value_text(high)})" if low is None else f" (above {value_text(low)})"
    return f" ({number(low)} to {number(high)})"


def verdict_text(claim: Mapping[str, Any]) -> str:
    """Both verdicts where the mean and the median disagree."""
    other = claim.get("by_median")
    return f"{claim['verdict']}; by the median: {other}" if other else str(claim["verdict"])


def effect_text(entry: Mapping[str, Any]) -> str:
    ends = interval_text(entry["low"], entry["high"])
    return f"{entry['what']}: {value_text(entry['mean'])}{ends}"


def beside_text(entry: Mapping[str, Any]) -> str:
    """The few runs that dominate a mean, and the median; usually empty."""
    found = [entry["few_runs"]] if entry.get("few_runs") else []
    if median := entry.get("median"):
        ends = interval_text(median["low"], median["high"])
        found.append(f"median {number(median['median'])}{ends}")
    return ", ".join(found)


def hanging_text(final: Mapping[str, Any], runs: int) -> str:
    """The same for a final value."""
    few = few_runs_text(FewRuns(final["few_runs"], final["few_share"]), runs)
    ends = interval_text(final["median_low"], final["median_high"])
    return f"{few}, median {number(final['median'])}{ends}" if few else ""


def deciding(claim: Mapping[str, Any]) -> str:
    """The evidence that decided a verdict, and how much more of it there is."""
    agreeing = [entry for entry in claim["evidence"] if entry["verdict"] == claim["verdict"]]
    if not agreeing:
        return str(claim["why"])
    others = f", and {len(agreeing) - 1} more" if len(agreeing) > 1 else ""
    parts = [effect_text(agreeing[0]) + others, beside_text(agreeing[0]), claim["why"]]
    return "; ".join(part for part in parts if part)
