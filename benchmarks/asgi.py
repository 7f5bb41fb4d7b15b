"""python -m benchmarks.asgi: single pairs through our own connections, and through other servers.

The same service, bandit and client; only the server differs, each in a process of its own with one
worker and no access log. The servers take turns in short slices, in one order and then the other,
and each start is a new set of processes. A ratio is one of two neighbouring slices.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

from benchmarks.measuring import ratios
from benchmarks.peers import version_of
from benchmarks.service import (
    CONNECTIONS,
    ROOT,
    STARTING,
    Figures,
    Serving,
    Turn,
    ask,
    asking,
    free_port,
    service,
    wait_for,
)
from driftbandits import asgi_app
from driftbandits.service.http.asgi import AsgiApp
from driftbandits.service.server import tune_interpreter

LOWEST = 1.3  # the rule: times as many pairs as uvicorn, or our connections go
OURS = "our connections"
SERVERS = {
    "uvicorn": "--http httptools --loop uvloop --no-access-log --log-level warning",
    "granian": "--interface asgi --loop uvloop --no-access-log --log-level warning --workers 1",
}

Found = dict[str, list[Figures]]  # by server


def application() -> AsgiApp:
    """What other servers run; the interpreter is set up as for our own connections."""
    tune_interpreter()
    return asgi_app(without_keys=True)


@contextmanager
def other_server(name: str, folder: str) -> Iterator[Serving]:
    port = free_port()
    command = [sys.executable, "-m", name, "--factory", "benchmarks.asgi:application"]
    command += ["--port", str(port), *SERVERS[name].split()]
    environment = os.environ | {"DRIFTBANDITS_DATA": folder}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True)
    try:
        wait_for(lambda: ask(port, "/readyz"))
        yield Serving(process, port)
    finally:
        process.terminate()
        process.wait(STARTING)


def installed() -> list[str]:
    for name in SERVERS:
        if find_spec(name) is None:
            print(f"left out, as it is not installed: {name} (pip install {name})", flush=True)
    return [name for name in SERVERS if find_spec(name) is not None]


def start(stack: ExitStack, names: list[str]) -> dict[str, Turn]:
    """All servers, each with a database of its own on the disk."""
    turns = {}
    for name in [OURS, *names]:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "results"))
        server = service(folder) if name == OURS else other_server(name, folder)
        turns[name] = asking(stack.enter_context(server), "thompson", None, 0, "bandit")
    return turns


def take_turns(turns: dict[str, Turn], slices: int, seconds: float) -> Found:
    found: Found = {name: [] for name in turns}
    for number in range(slices):
        for name in list(turns)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(turns[name](seconds))
        row = "  ".join(f"{name} {found[name][-1]['pairs']:6,.0f}" for name in turns)
        print(f"  {number + 1}/{slices}  {row}", flush=True)
    return found


def summary(found: Found) -> None:
    def figures(name: str, key: str) -> list[float]:
        return [each[key] for each in found[name]]

    print(f"Medians of {len(found[OURS])} slices; {CONNECTIONS[None]} connections, thompson:")
    for name in found:
        pairs = statistics.median(figures(name, "pairs"))
        late = statistics.median(figures(name, "decide_p99"))
        release = "" if name == OURS else f" {version_of(name)}"
        print(f"  {name}{release}: {pairs:,.0f} pairs/s, p99 of a decision {late:.1f} ms")
    for name in list(found)[1:]:
        times = sorted(ratios(figures(OURS, "pairs"), figures(name, "pairs")))
        middle = statistics.median(times)
        spread = f"({times[0]:.2f} to {times[-1]:.2f})"
        print(f"  ours to {name}: {middle:.2f} times as many pairs {spread}")
        if name == "uvicorn":
            print(f"  at least {LOWEST} times uvicorn: {'yes' if middle >= LOWEST else 'no'}")
            # Hardly depends on what else the machine does; granian's worker is another process.
            busy = [figures(each, "busy") for each in (name, OURS)]
            more, (theirs, mine) = statistics.median(ratios(*busy)), map(statistics.median, busy)
            print(f"  CPU time per pair: {theirs:.0f} us, ours {mine:.0f} us, {more:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asgi", description=__doc__)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--slices", type=int, default=6, help="of each server in a start")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a slice")
    chosen = parser.parse_args()
    (ROOT / "results").mkdir(exist_ok=True)
    names, found = installed(), {}
    for number in range(chosen.starts):
        print(f"start {number + 1} of {chosen.starts}", flush=True)
        with ExitStack() as stack:
            turns = start(stack, names)
            for name, figures in take_turns(turns, chosen.slices, chosen.seconds).items():
                found.setdefault(name, []).extend(figures)
    summary(found)


if __name__ == "__main__":
    main()
