"""The driver's memory while very many tiny pieces go through Ray.

python -m benchmarks.many_pieces            # 100,000 pieces, on a Ray cluster of this machine
python -m benchmarks.many_pieces 2000

The whole way is taken: planned, sent, fetched, written to the store, and put together in the end.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from driftbandits.experiments.experiment import Experiment
from driftbandits.running.planning import PieceJob, plan
from driftbandits.running.runner import run_experiment
from driftbandits.running.watcher import Watcher

POINTS = 10  # how often the memory is looked at


class Sample(NamedTuple):
    """How far it was, and what the driver had taken by then."""

    pieces: int
    megabytes: float  # resident
    seconds: float


def resident() -> float:
    """Megabytes that this process has in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


class Look(Watcher):
    """Looks at the memory ten times on the way, and after the first pieces."""

    def __init__(self, pieces: int) -> None:
        self.samples: list[Sample] = []
        self._at = {min(1000, pieces // POINTS), *range(0, pieces + 1, max(pieces // POINTS, 1))}
        self._done = 0
        self._begin = time.monotonic()

    def note(self) -> None:
        self.samples.append(Sample(self._done, resident(), time.monotonic() - self._begin))
        print(self.samples[-1], file=sys.stderr, flush=True)

    def begin(self, jobs, kept) -> None:  # noqa: ARG002
        self.note()

    def advanced(self, job: PieceJob, steps: int, seconds: float | None = None) -> None:  # noqa: ARG002
        self._done += 1
        if self._done in self._at:
            self.note()


def tiny(pieces: int) -> Experiment:
    """One pull per run, and as many runs as fill the pieces."""
    world = (("bernoulli", "bernoulli(num_arms=2)"),)
    one = Experiment("many", "Many", environments=world, policies=(("chance", "uniform"),),
                     horizon=1, runs=1)  # fmt: skip
    (task,) = plan(one)
    return one.with_size(runs=pieces * task.width)


def measure(pieces: int) -> list[Sample]:
    """The driver's memory on the way; the last sample is after everything is put together."""
    look = Look(pieces)
    with tempfile.TemporaryDirectory(prefix="driftbandits-") as folder:
        results = run_experiment(tiny(pieces), folder, on="ray", watcher=look)
        look.note()
        found = len(list(Path(folder, "pieces").glob("*.parquet")))
    assert found == pieces
    assert results.table["run"].n_unique() == results.experiment.runs
    return look.samples


def table(samples: list[Sample]) -> str:
    """As Markdown."""
    rows = ["| pieces done | driver, MB | seconds |", "| ---: | ---: | ---: |"]
    rows += [f"| {s.pieces:,} | {s.megabytes:,.0f} | {s.seconds:,.0f} |" for s in samples[:-1]]
    last = samples[-1]
    rows.append(f"| table written | {last.megabytes:,.0f} | {last.seconds:,.0f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    os.environ.setdefault("RAY_ADDRESS", "local")
    print(table(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)))
