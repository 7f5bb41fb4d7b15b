"""python -m benchmarks.programs [REVISION ...]: how many programs the quick commands compile.

Each command runs in a process and with a cache of its own, in this tree and in those of the given
revisions. Prints the programs that XLA compiled and how long JAX traced, lowered and compiled
(or loaded) them, in seconds that add up over all threads.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.revisions import ROOT, tree_of

COMMANDS = {
    "reproduce": ["reproduce", "--quick"],
    "field": ["run", "field", "--quick"],
    "tracker": ["run", "tracker", "--quick"],
}

CHILD = """
import json, sys, time
from collections import Counter
import jax.monitoring
from driftbandits.cli.main import main

counts, seconds = Counter(), Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event]))

def add(event, duration, **_):
    counts[event] += 1
    seconds[event] += duration

jax.monitoring.register_event_duration_secs_listener(add)
begin = time.perf_counter()
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
took = time.perf_counter() - begin
stages = {"tracing": "jaxpr_trace", "lowering": "jaxpr_to_mlir_module", "XLA": "backend_compile"}
found = {name: seconds[f"/jax/core/compile/{stage}_duration"] for name, stage in stages.items()}
asked, kept = "/jax/core/compile/backend_compile_duration", "/jax/compilation_cache/cache_hits"
found |= {"programs": counts[asked] - counts[kept], "all": took}
print(json.dumps(found))
"""


def count(tree: Path, arguments: list[str]) -> dict[str, float]:
    """What a command compiles, with the code of a tree."""
    with tempfile.TemporaryDirectory() as folder:
        surroundings = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": folder}
        surroundings.pop("JAX_COMPILATION_CACHE_DIR", None)
        command = [sys.executable, "-c", CHILD, *arguments, "--out", f"{folder}/results"]
        done = subprocess.run(
            command, env=surroundings, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("revisions", nargs="*", help="older ones, as git knows them")
    parser.add_argument("--only", choices=COMMANDS)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        trees = {name: stack.enter_context(tree_of(name)) for name in chosen.revisions}
        for name in [chosen.only] if chosen.only else COMMANDS:
            for revision, tree in (trees | {"this tree": ROOT}).items():
                found = count(tree, COMMANDS[name])
                print(
                    f"{name}, {revision}: {found['programs']} programs; {found['all']:.0f} s, "
                    f"tracing {found['tracing']:.0f}, lowering {found['lowering']:.0f}, "
                    f"compiling or loading {found['XLA']:.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
