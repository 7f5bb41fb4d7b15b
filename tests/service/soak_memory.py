"""The memory of workers along a soak: whether it is flat."""

import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.service.serving import Serving

MEGABYTE = 1e6
KEPT_BYTES = 850  # of a decision among a bandit's newest 20,000, as measured
LONG_ENOUGH = 120  # seconds: before that, a fit says little
WARMING_UP = 0.25  # of the time that is watched: not judged


class Sample(NamedTuple):
    time: float
    resident: float  # MB
    accounted: float = 0.0  # MB, of decisions that are kept on purpose


def resident(process: int) -> float:
    """Megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


class Memory:
    """Samples of each worker since it was started last."""

    def __init__(self, workers: list[Serving]) -> None:
        self._workers = workers
        self._lives: list[list[list[Sample]]] = [[[]] for _ in workers]
        self._watched = 0.0, 0.0

    def began(self, worker: Serving) -> None:
        self._lives[self._workers.index(worker)].append([])

    def begin_watching(self) -> None:
        """From now on nobody is killed."""
        self._begin = time.monotonic()

    def end_watching(self) -> None:
        self._watched = self._begin, time.monotonic()

    def sample(self, kept: int) -> None:
        """With the number of decisions that the workers keep for their pages."""
        accounted = kept * KEPT_BYTES / MEGABYTE / len(self._workers)
        for worker, lives in zip(self._workers, self._lives, strict=True):
            if worker.process and worker.process.poll() is None:
                lives[-1].append(Sample(time.monotonic(), resident(worker.process.pid), accounted))

    def last(self) -> str:
        return ", ".join(f"{lives[-1][-1].resident:.0f}" for lives in self._lives if lives[-1])

    def growth(self) -> float | None:
        """In ten minutes, as a share, of the worker that grows most; None if that is too early."""
        since, until = self._watched
        if until - since < LONG_ENOUGH:
            return None
        return max(growth_of(lives[-1], since, until) for lives in self._lives)

    def most(self) -> float:
        """Megabytes, at any time."""
        return max(s.resident for lives in self._lives for life in lives for s in life)

    def summary(self) -> str:
        lines = []
        for lives in self._lives:
            ends = [(life[0].resident, life[-1].resident) for life in lives if life]
            text = ", ".join(f"{first:.0f} to {last:.0f}" for first, last in ends[-5:])
            lines.append(f"{len(lives)} lives, the last ones {text} MB")
        growth = self.growth()
        known = "not watched for long" if growth is None else f"{100 * growth:+.1f}% in 10 minutes"
        return "; ".join([*lines, known])


def growth_of(samples: list[Sample], since: float, until: float) -> float:
    """By a linear fit to what was watched, without its first part."""
    start = since + WARMING_UP * (until - since)
    judged = np.array([sample for sample in samples if start <= sample.time <= until])
    times, sizes, accounted = judged.T
    slope = np.polyfit(times - times[0], sizes - accounted, 1)[0]
    return float(600 * slope / sizes.mean())
