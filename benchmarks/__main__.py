"""python -m benchmarks [part ...] [--short] [--again]: measures, and writes the results.

Each part runs in a process of its own and is kept in benchmarks/measured as soon as it is done, so
that a run that was stopped goes on where it was. The page is benchmarks/results.md; what a short
run measures, and its page, are in results/bench. Parts that were measured with older code, or on
another machine, stay on the page, which says so.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import page
from benchmarks.marks import with_table
from benchmarks.measuring import Goal, Part, Series

ROOT = Path(__file__).parent.parent
PARTS = {  # name: module, function, minutes it takes, about
    "recurrent": ("recurrent", "recurrent", 3),
    "neural_linear": ("neural_linear", "neural_linear", 3),
    "tracker": ("tracker", "tracker", 2),
    "policies": ("policies", "policies", 8),
    "peers": ("peers", "peers", 2),
    "growth": ("growth", "growth", 8),
    "memory": ("growth", "memory", 12),
    "tricks": ("tricks", "tricks", 5),
    "first": ("first_result", "first_result", 2),
    "service": ("service", "service_load", 9),
}


SHORT = ROOT / "results" / "bench"


def place(name: str, short: bool) -> Path:
    return (SHORT if short else ROOT / "benchmarks" / "measured") / f"{name}.json"


def measure(name: str, short: bool) -> None:
    """One part, in this process."""
    module, function, _ = PARTS[name]
    about = page.surroundings()
    part = getattr(importlib.import_module(f"benchmarks.{module}"), function)(short)
    target = place(name, short)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps({"part": asdict(part), "about": about}, indent=1))
    partial.replace(target)


def read(name: str, short: bool) -> tuple[Part, dict[str, str]]:
    kept = json.loads(place(name, short).read_text())
    fields = kept["part"]
    fields["series"] = [Series(**values) for values in fields["series"]]
    fields["goals"] = [Goal(**values) for values in fields["goals"]]
    return Part(**fields), kept["about"]


def up_to_date(name: str, short: bool) -> bool:
    """Whether a part is there, of this machine and of the code as it is now."""
    if not place(name, short).exists():
        return False
    about = read(name, short)[1]
    return (about["code"], about["machine"]) == (page.code(), page.machine())


def run_child(name: str, short: bool) -> bool:
    # One thread for NumPy, as for everyone else; PyTorch's threads are set where it is called.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "benchmarks", "--one", name] + ["--short"] * short
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def write(short: bool) -> None:
    """The page, from all parts there are; the curves, if both of theirs are there."""
    done = {name: read(name, short) for name in PARTS if place(name, short).exists()}
    folder = SHORT if short else ROOT / "benchmarks"
    figure = {"growth", "memory"} <= set(done)
    if figure:
        from benchmarks.curves import draw

        draw(done["growth"][0], done["memory"][0], folder / "growth.png")
    target = folder / "results.md"
    target.write_text(page.page(list(done.values()), figure=figure, short=short))
    print(f"written: {target.relative_to(ROOT)}")
    if not short and all(up_to_date(name, short) for name in PARTS):
        publish([part for part, _ in done.values()])


def publish(parts: list[Part]) -> None:
    """The goals in the docs, and some of them in the README."""
    target = ROOT / "docs" / "performance.md"
    target.write_text(with_table(target.read_text(), "goals", page.goals_table(parts)))
    readme = ROOT / "README.md"
    headline = page.headline([goal for part in parts for goal in part.goals])
    readme.write_text(with_table(readme.read_text(), "speed", headline))
    print(f"written: {target.relative_to(ROOT)} and the table in {readme.name}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--short", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--again", action="store_true", help="also the parts that are done")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"part must be one of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    return chosen


def main() -> int:
    chosen = arguments()
    if chosen.one:
        measure(chosen.one, chosen.short)
        return 0
    names = chosen.parts or list(PARTS)
    failed = []
    for i, name in enumerate(names):
        if up_to_date(name, chosen.short) and not (chosen.again or chosen.parts):
            print(f"[{i + 1}/{len(names)}] {name}: done before")
            continue
        minutes = "" if chosen.short else f", about {PARTS[name][2]} minutes"
        print(f"[{i + 1}/{len(names)}] {name}{minutes}", flush=True)
        if not run_child(name, chosen.short):
            failed.append(name)
    write(chosen.short)
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
