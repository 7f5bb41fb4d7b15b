"""The memory of workers along a soak: whether it is flat.

Flat means: in the last half of the time in which nobody was killed, what is left after subtracting
the decisions that a worker keeps on purpose grows by less than `MOST_SHARE` in ten minutes.
Before that, programs are compiled and caches fill.
"""

import os
import time
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.service.serving import Serving

MEGABYTE = 1e6
KEPT_BYTES = 137  # of a decision among a bandit's newest 20,000: the growth of a `Monitor`
OPEN_BYTES = 415  # of one that waits for its reward: the growth of a `tracker`'s `DecisionBook`
JUDGED = 0.5  # of the time that is watched: the end of it
LONG_ENOUGH = 60.0  # seconds that are judged: in less, a slope says little
STRETCH = 10.0  # seconds; of each the lowest counts, as exports and rebuilds come and go
MOST_SHARE = 0.05  # in ten minutes
NOISE = 10.0  # MB within what is judged: a cache that fills, or what is not given back yet


class Sample(NamedTuple):
    time: float
    resident: float  # MB
    accounted: float = 0.0  # MB, of decisions that are kept on purpose


class Growth(NamedTuple):
    megabytes: float  # within what was judged
    share: float  # in ten minutes

    @property
    def is_flat(self) -> bool:
        return self.share < MOST_SHARE or self.megabytes < NOISE

    def __str__(self) -> str:
        return f"{self.megabytes:+.1f} MB at the end, {100 * self.share:+.1f}% in 10 minutes"


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

    def sample(self, kept: int, waiting: int) -> None:
        """With the decisions that the workers keep for their pages, and those that are open."""
        accounted = (kept * KEPT_BYTES + waiting * OPEN_BYTES) / MEGABYTE / len(self._workers)
        for worker, lives in zip(self._workers, self._lives, strict=True):
            if worker.process and worker.process.poll() is None:
                lives[-1].append(Sample(time.monotonic(), resident(worker.process.pid), accounted))

    def last(self) -> str:
        return ", ".join(f"{lives[-1][-1].resident:.0f}" for lives in self._lives if lives[-1])

    def growth(self) -> Growth | None:
        """Of the worker that grows most; None if that is too early."""
        since, until = self._watched
        if JUDGED * (until - since) < LONG_ENOUGH:
            return None
        return max(growth_of(lives[-1], since, until) for lives in self._lives)

    def most(self) -> float:
        """Megabytes, at any time."""
        return max(s.resident for lives in self._lives for life in lives for s in life)

    def summary(self) -> str:
        lines = []
        for lives in self._lives:
            accounted = lives[-1][-1].accounted
            lines.append(f"{len(lives)} lives, MB at each minute of the last {minutes(lives[-1])}, "
                         f"{accounted:.0f} of them for decisions")  # fmt: skip
        return "; ".join([*lines, str(self.growth() or "not watched for long")])


def minutes(samples: list[Sample]) -> str:
    """The first sample of each minute, and the last one."""
    first: dict[int, float] = {}
    for sample in samples:
        first.setdefault(int((sample.time - samples[0].time) / 60), sample.resident)
    return " ".join(f"{size:.0f}" for size in [*first.values(), samples[-1].resident])


def growth_of(samples: list[Sample], since: float, until: float) -> Growth:
    """By the median slope between any two stretches, which a few peaks do not mislead."""
    start = until - JUDGED * (until - since)
    stretches: dict[int, list[Sample]] = {}
    for sample in samples:
        if start <= sample.time <= until:
            stretches.setdefault(int((sample.time - start) / STRETCH), []).append(sample)
    lowest = [(n, min(s.resident - s.accounted for s in own)) for n, own in stretches.items()]
    slopes = [(b - a) / (m - n) / STRETCH for (n, a), (m, b) in combinations(lowest, 2)]
    slope = median(slopes)
    return Growth(slope * (until - start), 600 * slope / median(size for _, size in lowest))
