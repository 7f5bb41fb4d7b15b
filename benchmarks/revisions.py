"""python -m benchmarks.revisions REVISION: this tree beside an older one, slice by slice.

Engine, agent and service of both trees are asked in turn, each slice in the order opposite to the
one before, so that both meet the same machine; and both are started several times, as where a
process happens to lie in memory can make it faster or slower by a tenth for all of its life. Prints
the median of the ratios of neighbouring slices, now over before: below 1 is faster. Times are those
on the core, which a busy machine changes least.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.service import BATCH, CONNECTIONS, asking, service

ROOT = Path(__file__).parents[1]
SIMULATIONS = {"ucb": (20_000, 100), "tracker": (4_000, 60), "recurrent": (1_500, 4)}
AGENTS = {"thompson": 1_000, "tracker": 1_000}  # pairs of a slice
SERVED = {"thompson": None, "tracker": BATCH}  # pairs in a request
SECONDS = 4.0  # of load in a slice of the service

CHILD = """
import sys, time
from driftbandits import Agent, simulate

agents = {}

def engine(policy, horizon, runs):
    simulate(policy, "sinusoidal", horizon=horizon, runs=runs, cores=1)

def agent(policy, pairs):
    bandit = agents.setdefault(policy, Agent([f"arm{i}" for i in range(10)], policy=policy))
    for _ in range(pairs):
        bandit.reward(bandit.decide().id, 1.0)

for line in sys.stdin:
    name, policy, *sizes = line.split()
    begin = time.process_time()
    {"engine": engine, "agent": agent}[name](policy, *map(int, sizes))
    print(time.process_time() - begin, flush=True)
"""


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """The files of a revision, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


@contextmanager
def child(code: str, tree: Path, **variables: str) -> Iterator[Callable[[str], float]]:
    """A process that runs this code beside that of a tree; given a line, it answers a number."""
    environment = os.environ | {"PYTHONPATH": str(tree)} | variables
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=tree, **pipes)

    def ask(line: str) -> float:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    try:
        yield ask
    finally:
        process.stdin.close()
        process.wait()


Slices = list[tuple[float, float]]  # before and now


def take_slices(turns: list[Callable[[], float]], count: int) -> Slices:
    """`turns` are before and now; the first slice of each is to warm up."""
    for turn in turns:
        turn()
    slices = []
    for number in range(count):
        order = [0, 1] if number % 2 == 0 else [1, 0]
        taken = {place: turns[place]() for place in order}
        slices.append((taken[0], taken[1]))
    return slices


def show(what: str, slices: Slices) -> None:
    ratios = sorted(now / before for before, now in slices)
    quarter = len(ratios) // 4
    before, now = (statistics.median(each) for each in zip(*slices, strict=True))
    print(
        f"{what}: {statistics.median(ratios):.3f} (half of them {ratios[quarter]:.3f} to "
        f"{ratios[-1 - quarter]:.3f}), medians {before:.4g} and {now:.4g}",
        flush=True,
    )


def compare_libraries(trees: list[Path], starts: int, slices: int) -> None:
    lines = [f"engine {name} {sizes[0]} {sizes[1]}" for name, sizes in SIMULATIONS.items()]
    lines += [f"agent {name} {pairs}" for name, pairs in AGENTS.items()]
    taken: dict[str, Slices] = {line: [] for line in lines}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(starts):
            with ExitStack() as stack:
                asks = [
                    stack.enter_context(child(CHILD, tree, JAX_COMPILATION_CACHE_DIR=cache))
                    for tree in trees
                ]
                for line in lines:
                    turns = [lambda ask=ask, line=line: ask(line) for ask in asks]
                    taken[line] += take_slices(turns, slices)
    for line in lines:
        show(f"{line}, seconds", taken[line])


def compare_services(trees: list[Path], starts: int, slices: int) -> None:
    """Both are up all the time, but only one is asked at a time."""
    taken: dict[str, Slices] = {policy: [] for policy in SERVED}
    for _ in range(starts):
        with ExitStack() as stack:
            served = []
            for tree in trees:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                served.append(stack.enter_context(service(folder, tree)))
            for policy, batch in SERVED.items():
                takes = [asking(each, policy, batch, 0, policy) for each in served]
                turns = [lambda take=take: take(SECONDS)["busy"] for take in takes]
                taken[policy] += take_slices(turns, slices)
    for policy, batch in SERVED.items():
        how = f"batches of {batch}" if batch else "single pairs"
        show(f"service {policy}, {how}, us on the core per pair", taken[policy])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions", description=__doc__)
    parser.add_argument("revision", help="the older one, as git knows it")
    parser.add_argument("--starts", type=int, default=5, help="of every process")
    parser.add_argument("--only", choices=["libraries", "services"])
    parser.add_argument("--slices", type=int, default=4, help="after every start")
    chosen = parser.parse_args()
    assert set(CONNECTIONS) >= set(SERVED.values())
    with tree_of(chosen.revision) as old:
        if chosen.only != "services":
            compare_libraries([old, ROOT], chosen.starts, chosen.slices)
        if chosen.only != "libraries":
            compare_services([old, ROOT], chosen.starts, chosen.slices)


if __name__ == "__main__":
    main()
