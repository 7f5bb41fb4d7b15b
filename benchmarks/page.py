"""The parts as Markdown: benchmarks/results.md."""

import datetime
import hashlib
import os
import platform
import shutil
import statistics
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measuring import CORES, Goal, Part, Series
from driftbandits import __version__
from driftbandits.policies import POLICIES
from driftbandits.provenance import fingerprint_of

PACKAGES = ["jax", "jaxlib", "optax", "numpy", "scipy"]
WRITERS = {"__init__", "__main__", "page", "marks", "curves", "paper", "many_pieces"}
WRITERS |= {"field", "finals", "tracker_picture", "tracker_evidence", "tracker_memory"}
WRITERS |= {"remembering_tracker", "history_problems"}
PEERS = ["torch", "pymab", "river", "SMPyBandits", "mabwiser"]


def machine() -> str:
    """Model, cores and caches, as far as the system tells."""
    found = {}
    if shutil.which("lscpu"):
        lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
        found = dict(line.split(":", 1) for line in lines.splitlines() if ":" in line)
    model = found.get("Model name", platform.processor() or platform.machine()).strip()
    caches = [
        f"{name.removesuffix(' cache')} {found[name].strip()}"
        for name in ("L1d cache", "L2 cache", "L3 cache")
        if name in found
    ]
    return ", ".join([model, f"{CORES} cores", *caches])


def versions() -> str:
    found = [f"Python {platform.python_version()}", f"driftbandits {__version__}"]
    for package in PACKAGES + PEERS:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join([*found, compiler()])


def compiler() -> str:
    if not shutil.which("cc"):
        return "no C compiler"
    lines = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=False).stdout
    return lines.splitlines()[0] if lines else "cc"


def code() -> str:
    """Changes with the code that is measured and the code that measures."""
    digest = hashlib.sha256(
        fingerprint_of(
            "simulation", "service.server", *(f"policies.{name}" for name in POLICIES)
        ).encode()
    )
    folder = Path(__file__).parent
    for file in sorted([*folder.glob("*.py"), *folder.glob("*.c")]):
        if file.stem not in WRITERS:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def surroundings() -> dict[str, str]:
    """What a part's numbers depend on besides the code."""
    return {
        "machine": machine(),
        "versions": versions(),
        "code": code(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


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
