"""Jobs on threads, one per core; XLA lets go of Python's lock while it works."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from driftbandits import check

T = TypeVar("T")

Stopped = threading.Event  # set when nobody waits for the job any more
Job = Callable[[Stopped], T]

AHEAD = 2  # jobs handed out per core, so that none waits for the next


class WorkError(RuntimeError):
    """Work that could not be done, told with the remedy."""


def available_cores() -> int:
    """Cores that this process may use, where the system tells."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def work_off(jobs: Iterable[Job[T]], cores: int | None = None) -> Iterator[tuple[int, T]]:
    """Starts the jobs in order; yields each one's index and what it returns, as they finish.

    Only a few are handed out at a time, so that the cost of a job does not grow with their number.
    After an error or an interrupt the jobs under way are told to stop, and not waited for. The
    pool's threads end before the interpreter does: one that outlived it inside XLA would abort the
    whole process.
    """
    cores = available_cores() if cores is None else cores
    check.whole(cores=cores)
    stopped = threading.Event()
    pool = ThreadPoolExecutor(cores)
    waiting = enumerate(jobs)
    under_way: dict[Future[T], int] = {}
    try:
        while True:
            for index, job in islice(waiting, AHEAD * cores - len(under_way)):
                under_way[pool.submit(job, stopped)] = index
            if not under_way:
                return
            # Python looks for Ctrl-C only between waits: polars' signal handler restarts them.
            for future in wait(under_way, timeout=0.2, return_when=FIRST_COMPLETED).done:
                yield under_way.pop(future), future.result()
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
