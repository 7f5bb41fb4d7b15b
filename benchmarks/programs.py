"""How many programs XLA compiles for the quick commands, in this tree and in an older one.

Each command runs in a process and with a cache of its own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Goal, Part, Series, ratios
from benchmarks.revisions import ROOT, tree_of

OLD, OLD_NAME = "34ada81", "0.11.0"  # the last version whose settings were constants of programs
COMMANDS = [["reproduce", "--quick"], ["run", "field", "--quick"], ["run", "tracker", "--quick"]]
SHORT = [["run", "paper/figure_1a", "--quick"]]

CHILD = """
from collections import Counter
import jax.monitoring
from driftbandits.cli.main import main

counts = Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event]))
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: counts.update([event]))
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
asked, loaded = "/jax/core/compile/backend_compile_duration", "/jax/compilation_cache/cache_hits"
print(counts[asked] - counts[loaded])
"""


def count(tree: Path, arguments: list[str]) -> int:
    """The programs that a command compiles, with the code of a tree."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": folder}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments, "--out", f"{folder}/results"],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    return int(done.stdout.splitlines()[-1])


def programs(short: bool) -> Part:
    """Programs compiled by each command, in both trees, and their ratio."""
    series, goals = [], []
    with tree_of(OLD) as old:
        for arguments in SHORT if short else COMMANDS:
            name = " ".join(arguments)
            found = {}
            for tree_name, tree in ((OLD_NAME, old), ("today", ROOT)):
                found[tree_name] = [float(count(tree, arguments))]
                series.append(Series(f"{name}, {tree_name}", found[tree_name], "programs"))
                print(f"  {name}, {tree_name}: {found[tree_name][0]:.0f} programs", flush=True)
            share = ratios(found["today"], found[OLD_NAME])
            goals.append(Goal(f"{name}: programs, share of those of {OLD_NAME}", share, high=0.5))
    return Part(
        "Compiled programs",
        series,
        goals,
        ["Each command ran once, with an empty cache: the count does not depend on the machine."],
    )
