"""Claims about curves, as experiment files write them.

    lower = "a", higher = "b" or ["b", "c"]     mean of b - factor * a is above 0   (factor 1)
    near = "a", to = "b", factor = 2            mean of a / mean of b is below factor
    falls, rises = "a" or ["a", "b"]            change from the span's start to its end
    levels_off, keeps_growing = ...             growth over the second half of the span, as a share
                                                of the final value, against `tolerance` (0.1)
    stable = "a", factor = 2                    largest mean over smallest mean in a sweep

Two shorthands: `higher = "every other policy"` is all lines in the environment of the one in
`lower` but those of its own policy, tuned ones included; `on = "every environment"` makes a claim
for each environment, and its names are then those of policies.

`at` is a time, `over` a span: [from, to]. Whole numbers are pulls, fractions are of the horizon.
A comparison without either is at the horizon, a shape without is over everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftbandits import check

COMPARISONS = ["lower", "near"]
SHAPES = ["falls", "rises", "levels_off", "keeps_growing"]
KINDS = [*COMPARISONS, *SHAPES, "stable", "counterexample"]
COMMON = ["text", "section", "reading"]
ALSO = {
    "lower": ["higher", "factor", "at", "over", "on"],
    "near": ["to", "factor", "at", "over", "on"],
    "falls": ["over", "on"],
    "rises": ["over", "on"],
    "levels_off": ["over", "tolerance", "on"],
    "keeps_growing": ["over", "tolerance", "on"],
    "stable": ["factor", "at", "over", "values", "on"],
    "counterexample": [],
}
NAMING = [*COMPARISONS, "higher", "to", *SHAPES, "stable"]  # keys whose values are names
EVERY_OTHER = "every other policy"
EVERYWHERE = "every environment"


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


def parse_claim(table: Mapping[str, Any], labels: Sequence[str], swept: Sequence[str]) -> Claim:
    """Reads one claim; `labels` are the lines, `swept` the policies of a sweep.

    An `on` is the environment's name, as `on_each` writes it.
    """
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
    if values is not None and (not isinstance(values, list) or len(values) < 2):
        check.fail("values", "a list of at least two swept values", values)
    return Claim(
        kind,
        text_of(table),
        names_in(kind, table[kind], known),
        names_in(others, table.get(others), known) if others else (),
        table.get("section", ""),
        table.get("reading", ""),
        float(table.get("factor", 1)),
        float(table.get("tolerance", 0.1)),
        span_of(table),
        None if values is None else tuple(values),
    )


def on_each(
    table: Mapping[str, Any], environments: Sequence[str], label: Callable[[str, str], str]
) -> list[dict[str, Any]]:
    """A claim with `on` once for each environment, with the names of lines; any other as it is."""
    if "on" not in table or not environments:
        return [dict(table)]
    check.known("on", table["on"], [EVERYWHERE])

    def placed(names: Any, environment: str) -> Any:
        if isinstance(names, list):
            return [placed(name, environment) for name in names]
        a_name = isinstance(names, str) and names != EVERY_OTHER
        return label(names, environment) if a_name else names

    return [
        {
            **table,
            **{key: placed(table[key], environment) for key in NAMING if key in table},
            "on": environment,
        }
        for environment in environments
    ]


def with_rivals(
    table: Mapping[str, Any], lines: Mapping[str, tuple[str, str]]
) -> Mapping[str, Any]:
    """A claim with "every other policy" as names; `lines`: label -> policy, environment.

    A policy with tuned settings is the same policy, and so no rival.
    """
    if table.get("higher") != EVERY_OTHER:
        return table
    label = table.get("lower")
    check.known(f"lower, where higher is {EVERY_OTHER!r},", label, lines)
    policy, environment = lines[str(label)]
    here = {other: name for other, (name, place) in lines.items() if place == environment}
    return {**table, "higher": [other for other, name in here.items() if name != policy]}


def text_of(table: Mapping[str, Any]) -> str:
    text: str = table["text"]
    return f"{text.removesuffix('.')} on {table['on']}." if "on" in table else text


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
    return span[0], span[1]


def pulls(time: float, horizon: int) -> int:
    """A fraction is of the horizon; a whole number is pulls."""
    return time if isinstance(time, int) else round(time * horizon)


def goes_forward(claim: Claim, horizon: int) -> bool:
    """Whether a claim's span ends after it begins (a single time counts)."""
    if claim.span is None or claim.span[0] == claim.span[1]:
        return True
    first, last = (pulls(time, horizon) for time in claim.span)
    return first < last
