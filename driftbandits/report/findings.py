"""The opening of a report: what holds, what does not hold, and how much is undecided.

An experiment without a decided claim gets a sentence on which policy did best.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.metrics import MORE_IS_BETTER
from driftbandits.report.style import MEANINGS
from driftbandits.report.wording import interval_text, value_text

Section = Mapping[str, Any]


def opening(sections: Sequence[Section]) -> dict[str, Any]:
    """The values for the page's template."""
    return {
        "findings": [
            *claims_that_are(HOLDS, sections),
            *claims_that_are(FAILS, sections),
            *(
                {"name": part["name"], "verdict": "", "text": part["best"]}
                for part in sections
                if part["best"] and not decided(part)
            ),
        ],
        "undecided": claims_that_are(UNDECIDED, sections),
        "picture": picture(sections),
    }


def claims_that_are(verdict: str, sections: Sequence[Section]) -> list[dict[str, Any]]:
    return [
        {"name": part["name"], **claim}
        for part in sections
        for claim in part["verdicts"]
        if claim["verdict"] == verdict
    ]


def decided(part: Section) -> int:
    return sum(claim["verdict"] != UNDECIDED for claim in part["verdicts"])


def picture(sections: Sequence[Section]) -> Section | None:
    """The experiment whose figure opens the page: the one with the most claims that hold.

    A single experiment begins with its figure anyway.
    """
    if len(sections) < 2:
        return None
    return max(sections, key=lambda part: (len(claims_that_are(HOLDS, [part])), decided(part)))


def best_of_ranking(rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence on the policy with the best mean rank over many problems."""
    kind = "tuned" if "tuned_rank" in rows[0] else "default"
    rank, low, high = (rows[0][f"{kind}_{name}"] for name in ("rank", "low", "high"))
    shown = value_text(rank) + interval_text(low, high)
    return f"The best mean rank over the problems is that of {rows[0]['policy']}, {shown}."


def best_of_finals(rows: Sequence[Mapping[str, Any]], measure: str) -> str:
    """A sentence on the best policy in each environment, which comes first in the rows."""
    first: dict[str, str] = {}
    for row in rows:
        shown = value_text(row["mean"]) + interval_text(row["low"], row["high"])
        first.setdefault(row["environment"], f"{row['line']}, {shown}")
    most = "highest" if measure in MORE_IS_BETTER else "lowest"
    return f"The {most} {MEANINGS[measure]} is that of {'; '.join(first.values())}."
