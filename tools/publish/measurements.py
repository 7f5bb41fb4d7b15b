"""Publishes the measurements of `python -m benchmarks`: benchmarks/results.md, docs and README."""

import statistics
import sys
from collections.abc import Iterable

from benchmarks.kept import PARTS, ROOT, SHORT, place, read, up_to_date
from benchmarks.measuring import Goal, Part, Series
from benchmarks.surroundings import code
from tools.publish.growth_curves import draw
from tools.publish.marks import with_table


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def spread(values: list[float]) -> list[str]:
    return [number(f(values)) for f in (statistics.median, min, max)]


def rows(lines: Iterable[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def series_table(series: list[Series]) -> str:
    head = [["what", "median", "lowest", "highest", "unit", "repeats"], ["---"] * 6]
    return rows(head + [[s.what, *spread(s.values), s.unit, str(len(s.values))] for s in series])


def goal_table(goals: list[Goal]) -> str:
    head = [["what", "median", "lowest", "highest", "goal", "reached"], ["---"] * 6]
    return rows(head + [[g.what, *spread(g.values), g.rule, verdict(g)] for g in goals])


def goals_table(parts: Iterable[Part]) -> str:
    """Every goal of some parts in one table."""
    head = [["what", "measured", "from, to", "goal", "reached"], ["---"] * 5]
    lines = []
    for goal in (goal for part in parts for goal in part.goals if goal.rule):
        middle, low, high = spread(goal.values)
        lines.append([goal.what, middle, f"{low}, {high}", goal.rule, verdict(goal)])
    return rows(head + lines) + "\n"


def headline(goals: Iterable[Goal]) -> str:
    """How many times faster, and the microseconds of small policies."""
    chosen = [g for g in goals if "times faster" in g.what or "us per step" in g.what]
    lines = [[g.what, *spread(g.values)[:1], " to ".join(spread(g.values)[1:])] for g in chosen]
    return rows([["", "median", "lowest to highest"], ["---"] * 3, *lines]) + "\n"


def verdict(goal: Goal) -> str:
    return ("yes" if goal.reached else "**no**") if goal.rule else ""


def section(part: Part, about: dict[str, str], main_machine: str) -> str:
    """Goals first; curves of many points are in the figure, not in a table."""
    short = [s for s in part.series if ", step " not in s.what]
    made = f"{about['date']}; load of the machine before: {about['load']}."
    if about["code"] != code():
        made += f" Measured with older code: {ours_in(about)}."
    if about["machine"] != main_machine:
        made += f" On another machine: {about['machine']}."
    pieces = [f"## {part.title}", made]
    if part.goals:
        pieces.append(goal_table(part.goals))
    if short:
        pieces.append(series_table(short))
    if part.notes:
        pieces.append("\n".join(f"- {note}" for note in part.notes))
    return "\n\n".join(pieces)


def ours_in(about: dict[str, str]) -> str:
    """The version of this package that a part was measured with."""
    return next(name for name in about["versions"].split(", ") if name.startswith("driftbandits "))


def page(parts: list[tuple[Part, dict[str, str]]], *, figure: bool, short: bool) -> str:
    about = max((about for _, about in parts), key=lambda about: about["date"])
    pieces = [
        "# How fast it is",
        "Written by `make bench`. Absolute times mean little on a shared machine; contestants take "
        "turns, and a ratio is one of neighbours in time: its median over the repeats is held "
        "against the goal, with the lowest and the highest beside it.",
        f"Machine: {about['machine']}.",
        f"Versions: {about['versions']}.",
    ]
    if short:
        pieces.append("**A short run (`--short`), to see that it works; no measurement.**")
    if figure:
        pieces.append("![Curves of time and memory](growth.png)")
    return "\n\n".join(pieces + [section(*part, about["machine"]) for part in parts]) + "\n"


def write(short: bool) -> None:
    """The page, from all parts there are; the curves, if both of theirs are there."""
    done = {name: read(name, short) for name in PARTS if place(name, short).exists()}
    folder = SHORT if short else ROOT / "benchmarks"
    figure = {"growth", "memory"} <= set(done)
    if figure:
        draw(done["growth"][0], done["memory"][0], folder / "growth.png")
    target = folder / "results.md"
    target.write_text(page(list(done.values()), figure=figure, short=short))
    print(f"written: {target.relative_to(ROOT)}")
    if not short and all(up_to_date(name, short) for name in PARTS):
        publish([part for part, _ in done.values()])


def publish(parts: list[Part]) -> None:
    """The goals in the docs, and some of them in the README."""
    target = ROOT / "docs" / "explanation" / "performance.md"
    target.write_text(with_table(target.read_text(), "goals", goals_table(parts)))
    readme = ROOT / "README.md"
    best = headline([goal for part in parts for goal in part.goals])
    readme.write_text(with_table(readme.read_text(), "speed", best))
    print(f"written: {target.relative_to(ROOT)} and the table in {readme.name}")


if __name__ == "__main__":
    write("--short" in sys.argv)
