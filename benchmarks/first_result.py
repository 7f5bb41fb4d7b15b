"""How long a user waits for the first result, in processes of their own, beside `import jax`.

The tree of today and an older one take turns, so that both meet the same machine. Python keeps its
bytecode, as it does for users: a process that writes none would be slower at everything.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.measuring import REPEATS, Goal, Part, Series, ratios
from benchmarks.revisions import ROOT, tree_of

OLD, OLD_NAME = "8303e06", "0.7.0"
POLICIES = ["tracker", "thompson"]
IMPORT = ["-c", "import jax"]
COMMAND_LINE = """
try:
    from driftbandits.cli.main import main
except ModuleNotFoundError:  # of an older tree
    from driftbandits.cli import main
main()
"""
COMPARE = ["-c", COMMAND_LINE, "compare"]
AGENT = """
from driftbandits import Agent
agent = Agent(["red", "green", "blue"], policy="{policy}")
agent.reward(agent.decide().id, 1.0)
"""


class Processes:
    """Python with the code of one tree, and a cache of its own."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree, self.cache = tree, folder / "cache"
        unset = ("PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR")
        self._environment = {name: os.environ[name] for name in os.environ if name not in unset} | {
            "PYTHONPATH": str(tree),
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "XDG_CACHE_HOME": str(self.cache),
            "DRIFTBANDITS_CACHE": "on",
        }

    def seconds(self, *arguments: str) -> float:
        begin = time.perf_counter()
        self.run(*arguments)
        return time.perf_counter() - begin

    def run(
        self, *arguments: str, stdout: int = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            check=True,
            text=True,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            cwd=self.tree,
            env=self._environment,
        )

    def forget(self) -> None:
        shutil.rmtree(self.cache, ignore_errors=True)

    def programs(self) -> set[Path]:
        return set(self.cache.rglob("*.programs"))


def first_and_second(processes: Processes, *arguments: str) -> tuple[float, float, int]:
    """Seconds with an empty cache, seconds once more, and programs that this compiled anew."""
    processes.forget()
    first = processes.seconds(*arguments)
    before = processes.programs()
    second = processes.seconds(*arguments)
    return first, second, len(processes.programs() - before)


def take_turns(trees: dict[str, Processes], repeats: int) -> dict[str, list[float]]:
    """Seconds by what was done; every repeat begins with another tree."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(repeats):
        found["import jax"].append(trees["today"].seconds(*IMPORT))
        order = list(trees) if number % 2 == 0 else list(trees)[::-1]
        for name in order:
            calls = {"compare": COMPARE} | {
                f"an agent's first pair, {policy}": ["-c", AGENT.format(policy=policy)]
                for policy in POLICIES
            }
            for what, call in calls.items():
                first, second, new = first_and_second(trees[name], *call)
                found[f"{what}, empty cache, {name}"].append(first)
                found[f"{what}, second process, {name}"].append(second)
                found[f"{what}, programs compiled anew, {name}"].append(float(new))
    return found


def small_waits(processes: Processes) -> dict[str, list[float]]:
    calls = {
        "driftbandits --help": ["-c", COMMAND_LINE, "--help"],
        "driftbandits list": ["-c", COMMAND_LINE, "list"],
        "from driftbandits import Client": ["-c", "from driftbandits import Client"],
    }
    return {
        what: [processes.seconds(*call) for _ in range(REPEATS)] for what, call in calls.items()
    }


def first_result(short: bool) -> Part:
    """Help, the list, the client; a comparison and an agent's first pair beside `import jax`."""
    with tempfile.TemporaryDirectory() as folder, tree_of(OLD) as old:
        trees = {"today": Processes(ROOT, Path(folder) / "today")}
        trees[OLD_NAME] = Processes(old, Path(folder) / "old")
        for processes in trees.values():  # bytecode is there from here
            processes.seconds(*COMPARE, "--horizon", "50")
            processes.seconds("-c", AGENT.format(policy="thompson"))
        waits = small_waits(trees["today"])
        found = take_turns(trees, 1 if short else REPEATS)
    seconds = {what: times for what, times in found.items() if "anew" not in what}
    return Part(
        "Time to the first result",
        [Series(what, times, "s") for what, times in (waits | seconds).items()],
        [*goals_of_waits(waits), *goals_of_turns(found)],
        [f"Of {OLD_NAME}, no agent keeps programs. Repeats: {len(found['import jax'])}."],
    )


def goals_of_waits(waits: dict[str, list[float]]) -> list[Goal]:
    highest = dict(zip(waits, [0.3, 0.5, 0.4], strict=True))
    return [Goal(f"{what}: seconds", times, high=highest[what]) for what, times in waits.items()]


def goals_of_turns(found: dict[str, list[float]]) -> list[Goal]:
    wanted = {"compare, second process, today": 3.5, "compare, empty cache, today": 9.0}
    wanted |= {
        f"an agent's first pair, {policy}, second process, today": 2.5 for policy in POLICIES
    }
    goals = []
    for what, values in found.items():
        if what.endswith("anew, today"):
            goals.append(Goal(what, values, high=0))
        elif "anew" not in what and what != "import jax":
            times = ratios(values, found["import jax"])
            goals.append(Goal(f"{what}: times `import jax`", times, high=wanted.get(what)))
    return goals
