"""Publishes the measurements of `python -m benchmarks` in docs/evidence/speed, docs and README."""

import statistics
import sys
from collections.abc import Iterable

from benchmarks.kept import PARTS, ROOT, SHORT, place, read
from benchmarks.measuring import Goal, Grid, Part, Series
from tools.publish.finals import wrapped
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


def grid_table(grid: Grid) -> str:
    """Medians, with columns for cells of the same name."""
    columns = list(next(iter(grid.rows.values())))
    lines = [
        [name, *(number(statistics.median(cells[column])) for column in columns)]
        for name, cells in grid.rows.items()
    ]
    table = rows([[grid.unit, *columns], ["---"] * (1 + len(columns)), *lines])
    return f"{grid.what[:1].upper()}{grid.what[1:]}:\n\n{table}"


FEATURED = {  # how a goal begins: what it is called in the docs
    "ucb: us": "`ucb`: us per pull, one core",
    "thompson: us": "`thompson`: us per pull, one core",
    "tracker, 10 arms: us per": "`tracker`: us per pull, one core",
    "driftbandits, ucb: times faster than pymab": "`ucb`: times as fast as pymab, the next fastest",
    "driftbandits, thompson: times faster than pymab": "`thompson`: times as fast as pymab",
    "recurrent, 1 core: times faster than (a)": "`recurrent`: times as fast as eager PyTorch",
    "recurrent, 1 core: times as long as (c)": "`recurrent`: times as long as bare C",
    "neural_linear, 1 core: times faster": "`neural_linear`: times as fast as plain NumPy",
    "Agent, thompson, no context: us": "an agent's decision and reward, `thompson`: us",
    "Agent, tracker, no context: us": "an agent's decision and reward, `tracker`: us",
    "compare, second process, today": "`driftbandits compare`, second call: times `import jax`",
    "service, thompson, single: pairs": "service, `thompson`: pairs per second",
    "service, thompson, batches of 100: pairs": "the same in batches of 100",
}


IN_README = [
    "recurrent, 1 core: times faster than (a)",
    "driftbandits, ucb: times faster than pymab",
    "Agent, tracker, no context: us",
    "service, thompson, single: pairs",
]


def headline(goals: list[Goal], chosen: Iterable[str] = FEATURED) -> str:
    """The figures that say most, as far as they were measured."""
    lines = []
    for begin in chosen:
        name = FEATURED[begin]
        found = [goal for goal in goals if goal.rule and goal.what.startswith(begin)]
        lines += [
            [name, *spread(goal.values)[:1], " to ".join(spread(goal.values)[1:])] for goal in found
        ]
    return rows([["", "median", "lowest to highest"], ["---"] * 3, *lines]) + "\n"


def verdict(goal: Goal) -> str:
    return ("yes" if goal.reached else "**no**") if goal.rule else ""


def section(part: Part, about: dict[str, str], main_machine: str) -> str:
    """Goals first; curves of many points are in the figure, not in a table."""
    short = [s for s in part.series if ", step " not in s.what]
    made = f"{ours_in(about)}, {about['date']}; load of the machine before: {about['load']}."
    if about["machine"] != main_machine:
        made += f" On another machine: {about['machine']}."
    pieces = [f"## {part.title}", wrapped(made)]
    if part.goals:
        pieces.append(goal_table(part.goals))
    if short:
        pieces.append(series_table(short))
    pieces += map(grid_table, part.grids)
    if part.notes:
        pieces.append("\n".join(wrapped(f"- {note}") for note in part.notes))
    return "\n\n".join(pieces)


def ours_in(about: dict[str, str]) -> str:
    """The version of this package that a part was measured with."""
    return next(name for name in about["versions"].split(", ") if name.startswith("driftbandits "))


def page(parts: list[tuple[Part, dict[str, str]]], *, figure: bool, short: bool) -> str:
    about = max((about for _, about in parts), key=lambda about: about["date"])
    pieces = [
        "# How fast it is",
        wrapped(
            "`make bench` measures and writes this page; [Performance](../../explanation/"
            "performance.md) explains it. Absolute times mean little on a shared machine, so "
            "programs take turns and ratios compare neighbours in time. A goal is reached if the "
            "median over the repeats meets it."
        ),
        f"Machine: {about['machine']}.",
        wrapped(f"Versions: {about['versions']}."),
    ]
    if short:
        pieces.append("**A short run (`--short`), to see that it works; no measurement.**")
    if figure:
        pieces.append("![Curves of time and memory](growth.png)")
    return "\n\n".join(pieces + [section(*part, about["machine"]) for part in parts]) + "\n"


def write(short: bool) -> None:
    """The page, from all parts there are; the curves, if both of theirs are there."""
    done = {name: read(name, short) for name in PARTS if place(name, short).exists()}
    folder = SHORT if short else ROOT / "docs" / "evidence" / "speed"
    figure = {"growth", "memory"} <= set(done)
    if figure:
        draw(done["growth"][0], done["memory"][0], folder / "growth.png")
    target = folder / "README.md"
    target.write_text(page(list(done.values()), figure=figure, short=short))
    print(f"written: {target.relative_to(ROOT)}")
    if not short:
        publish([part for part, _ in done.values()])


def publish(parts: list[Part]) -> None:
    """The headline figures, in the docs and in the README."""
    goals = [goal for part in parts for goal in part.goals]
    chosen = {"docs/explanation/performance.md": FEATURED, "README.md": IN_README}
    for name, rows_of in chosen.items():
        target = ROOT / name
        table = headline(goals, rows_of)
        target.write_text(with_table(target.read_text(), "speed", table))
        print(f"written: the table in {target.relative_to(ROOT)}")


if __name__ == "__main__":
    write("--short" in sys.argv)
