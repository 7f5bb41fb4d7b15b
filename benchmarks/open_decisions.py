"""python -m benchmarks.open_decisions --count N: what decisions cost that wait for their rewards.

Opens N decisions of a bandit with ten arms, with ids as the service makes them, and prints what
they take in memory and on disk, for how long a snapshot keeps the thread that decides, and how long
it takes to come back from it. Every policy has a process of its own. There is no log: a bandit that
comes back would also replay the events since its snapshot. Times are those on the core, which a
busy machine changes least.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from driftbandits.agents.checks import NOTHING
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import from_bytes
from driftbandits.agents.requests import PolicyInput
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.made_decisions import new_ids
from driftbandits.service.engine.reviver import revive
from driftbandits.service.engine.snapshot_writer import SNAPSHOT_EVERY, SnapshotWriter
from driftbandits.service.metrics import Metrics
from driftbandits.service.server import tune_interpreter
from driftbandits.service.store.store import Store

POLICIES = ["thompson", "tracker", "recurrent"]
ARMS = [f"arm{number}" for number in range(10)]
BATCH = 100
LATER = 20  # snapshots after the first one
MB = 1e6


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


class Pauses:
    """How long the thread that decides was busy with one thing."""

    def __init__(self) -> None:
        self.longest = 0.0

    def __enter__(self) -> None:
        self._begin = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.longest = max(self.longest, time.thread_time() - self._begin)

    def __str__(self) -> str:
        return f"{1e3 * self.longest:.1f} ms"


def opened(book: DecisionBook, count: int, batches: Pauses) -> Iterator[str]:
    """The ids of so many decisions; one more of each batch is rewarded, so that policies learn."""
    everyone = np.ones(len(ARMS), bool)
    for _ in range(0, count, BATCH):
        first, *rest = new_ids(BATCH + 1)
        book.set_clock(time.time())
        with batches:
            book.decide({id: PolicyInput(NOTHING, everyone) for id in (first, *rest)})
            book.settle([first], [float(first < rest[0])])
        yield from rest


def new_bandit(store: Store, policy: str) -> LiveBandit:
    config = {"arms": ARMS, "policy": policy, "seed": 1, "max_open": 10_000_000}
    row = store.create_bandit("bandit", config)
    return revive(store, row, store.claim(row.id, "one", "http://one", 3600.0)).live


def measure(policy: str, count: int, folder: Path) -> None:
    tune_interpreter()
    store = Store(f"sqlite:///{folder}/bandits.sqlite")
    live, writer = new_bandit(store, policy), SnapshotWriter(store, Metrics(), None)
    book, pauses, batches = live.book, Pauses(), Pauses()

    def snapshot() -> None:
        live.seq = sum(book.counts)
        while live.snapshot_seq < live.seq:
            with pauses:
                taken = live.snapshot()
            writer._write_one(live, taken)

    book.settle(list(opened(book, BATCH, Pauses())), [1.0] * BATCH)  # compiles
    before = resident()
    ids = random.Random(1).sample(list(opened(book, count, batches)), LATER * SNAPSHOT_EVERY // 2)
    print(f"{policy}, {count:,} open decisions of {len(ARMS)} arms:")
    print(f"  memory: {(resident() - before) / count:.0f} bytes each")
    print(f"  temporary file: {book.open.bytes_on_disk / MB:.1f} MB")
    print(f"  longest batch of {BATCH} decisions: {batches}")
    snapshot()
    print(f"  longest pause for a snapshot: {pauses}, with nothing in the store before")
    pauses.longest = 0.0
    for first in range(0, len(ids), SNAPSHOT_EVERY // 2):
        some = ids[first : first + SNAPSHOT_EVERY // 2]
        for _ in opened(book, len(some), Pauses()):
            pass
        book.settle(some, [1.0] * len(some))
        snapshot()
    print(
        f"  longest pause for a snapshot: {pauses}, of {LATER} more after {SNAPSHOT_EVERY:,} events"
    )
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"  database: {size / MB:.1f} MB")
    _, blob = store.read_snapshot(live.row.id)
    begin = time.process_time()
    again = from_bytes(blob, read=lambda n: store.segments.read(live.row.id, n), folder=folder)
    print(f"  back from the snapshot: {time.process_time() - begin:.1f} s", flush=True)
    assert list(again.open) == list(book.open)
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.open_decisions", description=__doc__
    )
    parser.add_argument("--count", type=int, default=100_000, help="open decisions (100,000)")
    parser.add_argument("--policies", nargs="+", default=POLICIES, metavar="POLICY")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in this process
    chosen = parser.parse_args()
    for policy in chosen.policies:
        if chosen.here:
            with tempfile.TemporaryDirectory() as folder:
                measure(policy, chosen.count, Path(folder))
        else:
            arguments = ["--count", str(chosen.count), "--policies", policy, "--here"]
            command = [sys.executable, "-m", "benchmarks.open_decisions", *arguments]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
