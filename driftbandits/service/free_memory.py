"""Gives memory that is free inside the process back to the operating system.

Compiling a policy takes a few hundred megabytes for some seconds. Some of what stays lies among
them, and so glibc keeps the rest, too, until it is told to give back whole free pages.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 30.0  # seconds; where little was freed, it takes less than a millisecond


@contextmanager
def giving_back_memory(every: float = EVERY) -> Iterator[None]:
    """Returns free memory now and then on a thread of its own, if the C library is glibc."""
    trim = malloc_trim()
    if trim is None:
        yield
        return
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(every):
            trim(0)

    thread = threading.Thread(target=work, name="driftbandits-memory")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def malloc_trim() -> Callable[[int], int] | None:
    """glibc's malloc_trim, which lets other threads run meanwhile."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
