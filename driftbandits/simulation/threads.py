"""Runs calls on threads, one per core; XLA releases Python's lock while it works."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from driftbandits import check

T = TypeVar("T")

Stopped = threading.Event  # set when nobody waits for the result any more
ThreadCall = Callable[[Stopped], T]

AHEAD = 2  # calls submitted per core, so that none waits for the next


class WorkError(RuntimeError):
    """Work that could not be done; the message says what to do."""


def available_cores() -> int:
    """The number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def call_on_threads(
    calls: Iterable[ThreadCall[T]], cores: int | None = None
) -> Iterator[tuple[int, T]]:
    """Starts the calls in order; yields each one's index and result as they finish.

    Only a few are submitted at a time, so that the cost of a call does not grow with their number.
    After an error or an interrupt, running calls are asked to stop, and are not waited for. The
    threads of the pool end before the interpreter does: a thread that outlived it inside XLA would
    abort the whole process.
    """
    cores = available_cores() if cores is None else cores
    check.integer(cores=cores)
    stopped = threading.Event()
    pool = ThreadPoolExecutor(cores)
    waiting = enumerate(calls)
    under_way: dict[Future[T], int] = {}
    try:
        while True:
            for index, call in islice(waiting, AHEAD * cores - len(under_way)):
                under_way[pool.submit(call, stopped)] = index
            if not under_way:
                return
            # Python looks for Ctrl-C only between waits: polars' signal handler restarts them.
            for future in wait(under_way, timeout=0.2, return_when=FIRST_COMPLETED).done:
                yield under_way.pop(future), future.result()
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
