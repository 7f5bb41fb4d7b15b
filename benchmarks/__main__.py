"""python -m benchmarks [part ...] [--short] [--again]: measures, and keeps what was measured.

Each part runs in a process of its own and is kept in benchmarks/measured as soon as it is done, so
that a run that was stopped goes on where it was; what a short run measures is in results/bench.
`python -m tools.publish.measurements [--short]` writes the page from it.
"""

import argparse
import importlib
import os
import subprocess
import sys

from benchmarks.kept import PARTS, ROOT, keep, up_to_date
from benchmarks.surroundings import surroundings


def measure(name: str, short: bool) -> None:
    """One part, in this process."""
    module, function, _ = PARTS[name]
    about = surroundings()
    part = getattr(importlib.import_module(f"benchmarks.{module}"), function)(short)
    keep(name, part, about, short)


def run_child(name: str, short: bool) -> bool:
    # One thread for NumPy, as for everyone else; PyTorch's threads are set where it is called.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "benchmarks", "--one", name] + ["--short"] * short
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


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
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
