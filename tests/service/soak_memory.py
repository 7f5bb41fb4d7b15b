"""The memory of workers along a soak: whether it is flat."""

import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.service.serving import Serving

MEGABYTE = 1e6
WARMING_UP = 0.25  # of the time that is watched: not judged


class Sample(NamedTuple):
    time: float
    resident: float  # MB


def resident(process: int) -> float:
    """Megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


class Memory:
    """Samples of each worker since it was started last."""

    def __init__(self, workers: list[Serving]) -> None:
        self._workers = workers
        self._lives: list[list[list[Sample]]] = [[[]] for _ in workers]
        self._watched_since = 0.0

    def began(self, worker: Serving) -> None:
        self._lives[self._workers.index(worker)].append([])

    def begin_watching(self) -> None:
        """From now on nobody is killed."""
        self._watched_since = time.monotonic()

    def sample(self) -> None:
        for worker, lives in zip(self._workers, self._lives, strict=True):
            if worker.process and worker.process.poll() is None:
                lives[-1].append(Sample(time.monotonic(), resident(worker.process.pid)))

    def last(self) -> str:
        return ", ".join(f"{lives[-1][-1].resident:.0f}" for lives in self._lives if lives[-1])

    def growth(self) -> float:
        """Of the worker that grows most: its share of growth in ten minutes, by a linear fit."""
        found = [growth_of(lives[-1], self._watched_since) for lives in self._lives]
        return max(found)

    def most(self) -> float:
        """Megabytes, at any time."""
        return max(s.resident for lives in self._lives for life in lives for s in life)

    def summary(self) -> str:
        lines = []
        for lives in self._lives:
            ends = [(life[0].resident, life[-1].resident) for life in lives if life]
            text = ", ".join(f"{first:.0f} to {last:.0f}" for first, last in ends[-5:])
            lines.append(f"{len(lives)} lives, the last ones {text} MB")
        return "; ".join(lines) + f"; growth {100 * self.growth():.1f}% in 10 minutes"


def growth_of(samples: list[Sample], since: float) -> float:
    """Of what was watched, without its first part."""
    end = samples[-1].time
    start = since + WARMING_UP * (end - since)
    times, sizes = np.array([sample for sample in samples if sample.time >= start]).T
    slope = np.polyfit(times - times[0], sizes, 1)[0] if len(times) > 2 else 0.0
    return float(600 * slope / sizes.mean())
