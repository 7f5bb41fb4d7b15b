"""What a part of the benchmark measures: series of numbers, and goals that they are held against.

Contestants take turns, so that the ratio of one repeat is one of neighbours in time.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from driftbandits import simulate

CORES = os.cpu_count() or 1
REPEATS = 5
PAUSE = 0.5  # seconds between turns: the threads of OpenMP spin for a while after their work

Times = dict[str, list[float]]  # name of a contestant: microseconds per step and run, by repeat


@dataclass(frozen=True)
class Contestant:
    take: Callable[[], object]
    steps: int  # of all runs together


@dataclass(frozen=True)
class Series:
    """A quantity, measured several times."""

    what: str
    values: list[float]
    unit: str = "us per step and run"


@dataclass(frozen=True)
class Goal:
    """A quantity whose median should lie between bounds; without bounds it is for information."""

    what: str
    values: list[float]
    low: float | None = None
    high: float | None = None

    @property
    def rule(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"at least {self.low:g}"
        return "" if self.high is None else f"at most {self.high:g}"

    @property
    def reached(self) -> bool:
        middle = statistics.median(self.values)
        low = -float("inf") if self.low is None else self.low
        return low <= middle <= (float("inf") if self.high is None else self.high)


@dataclass(frozen=True)
class Grid:
    """One quantity by rows and columns, each measured several times."""

    what: str
    unit: str
    rows: dict[str, dict[str, list[float]]]  # by row, by column


@dataclass
class Part:
    """One section of the results."""

    title: str
    series: list[Series] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)


def ours(policy: str, environment: str, horizon: int, runs: int, cores: int = 1) -> Contestant:
    def take() -> object:
        return simulate(policy, environment, horizon=horizon, runs=runs, cores=cores)

    return Contestant(take, horizon * runs)


def steady(proceed: Callable[[int], object], steps: int, runs: int) -> Contestant:
    """Goes on from where it was, so only the first turn pays for the start."""
    return Contestant(lambda: proceed(steps), steps * runs)


def per_step(contestant: Contestant) -> float:
    begin = time.perf_counter()
    contestant.take()
    return (time.perf_counter() - begin) / contestant.steps * 1e6


def take_turns(contestants: Mapping[str, Contestant], repeats: int = REPEATS) -> Times:
    """Every contestant once to warm up, then all of them in turn, several times."""
    for name, contestant in contestants.items():
        print(f"  warming up: {name}", flush=True)
        contestant.take()
    times: Times = {name: [] for name in contestants}
    for repeat in range(repeats):
        for name, contestant in contestants.items():
            time.sleep(PAUSE)
            times[name].append(per_step(contestant))
            print(f"  {repeat + 1}/{repeats}  {times[name][-1]:10.2f} us  {name}", flush=True)
    return times


def ratios(slower: list[float], faster: list[float]) -> list[float]:
    return [a / b for a, b in zip(slower, faster, strict=True)]


def as_series(times: Times) -> list[Series]:
    return [Series(name, values) for name, values in times.items()]
