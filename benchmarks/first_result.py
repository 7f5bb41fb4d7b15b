"""How long a user waits for the first result, in processes of their own."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import REPEATS, Goal, Part, Series, ratios

COMPARE = ["compare", "-e", "sinusoidal", "-p", "recurrent", "-p", "thompson", "-T", "500"]
FIRST_TIMES = 5


def seconds(arguments: list[str], cache: Path) -> float:
    program = Path(sys.executable).with_name("driftbandits")
    command = [str(program) if program.exists() else "driftbandits", *arguments]
    begin = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    )
    return time.perf_counter() - begin


def import_seconds(name: str) -> float:
    """Of a program that takes one public name, with the start of Python."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"from driftbandits import {name}"], check=True)
    return time.perf_counter() - begin


def compared(cache: Path, times: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds with an empty cache, seconds once more, and programs that this compiled anew."""
    first, second, new = [], [], []
    for _ in range(times):
        shutil.rmtree(cache, ignore_errors=True)
        first.append(seconds(COMPARE, cache))
        before = programs(cache)
        second.append(seconds(COMPARE, cache))
        new.append(float(len(programs(cache) - before)) if before else float("nan"))
    return first, second, new


def programs(cache: Path) -> set[Path]:
    """Compiled programs that are kept; none if there is no cache at all."""
    return set(cache.rglob("*-cache"))


def first_result(short: bool) -> Part:
    """Help, the list, the client, and a comparison the first and the second time."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        seconds(["--help"], cache)  # the files of the package are in the system's cache from here
        help_times = [seconds(["--help"], cache) for _ in range(REPEATS)]
        list_times = [seconds(["list"], cache) for _ in range(REPEATS)]
        client_times = [import_seconds("Client") for _ in range(REPEATS)]
        first, second, new = compared(cache, 1 if short else FIRST_TIMES)
    command = " ".join(COMPARE)
    series = [
        Series("driftbandits --help", help_times, "s"),
        Series("driftbandits list", list_times, "s"),
        Series("from driftbandits import Client", client_times, "s"),
        Series(f"driftbandits {command}, the first time", first, "s"),
        Series("the same, the second time", second, "s"),
    ]
    goals = [
        Goal("driftbandits --help: seconds", help_times, high=0.3),
        Goal("driftbandits list: seconds", list_times, high=0.5),
        Goal("from driftbandits import Client: seconds", client_times, high=0.4),
        Goal("the second compare: programs put into the cache anew", new, high=0),
        Goal("the second compare: share of the first one's time", ratios(second, first)),
    ]
    notes = [f"Comparisons with an empty cache: {len(first)}."]
    return Part("Time to the first result", series, goals, notes)
