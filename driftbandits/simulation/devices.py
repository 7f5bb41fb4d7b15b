"""Devices of our own, each with its own thread pool.

Every core has a block of runs of its own. XLA would cut the blocks' loops in parts for the threads
of its pool, and spend more time on them than on the work. A program's thread also hands some of its
work to the pool. So a pool has one thread, and every block that is computed at the same time a
pool. The caller's own devices and JAX's options stay as they are.
"""

import heapq
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count

import jax

POOL_THREADS = 1

_making = threading.RLock()
_numbers = count()
_idle: list[tuple[int, jax.Device]] = []  # a heap: the device that was made first is taken first
_this_thread = threading.local()


def device() -> jax.Device | None:
    """This thread's own device, if it has one."""
    return getattr(_this_thread, "device", None)


@contextmanager
def own_device() -> Iterator[None]:
    """What this thread computes here goes to a device whose pool no other thread has.

    One is made where none is idle, so there are as many as threads that compute at a time.
    """
    if jax.default_backend() != "cpu":
        yield
        return
    try:
        number, own = heapq.heappop(_idle)
    except IndexError:
        number, own = next(_numbers), new_device()
    before = device()
    _this_thread.device = own
    try:
        with jax.default_device(own):
            yield
    finally:
        _this_thread.device = before
        heapq.heappush(_idle, (number, own))


def agents_device() -> jax.Device:
    """The one device of all agents of this process."""
    with _making:
        return _agents_device()


@cache
def _agents_device() -> jax.Device:
    return new_device() if jax.default_backend() == "cpu" else jax.devices()[0]


def new_device() -> jax.Device:
    """JAX has no public function for it; without it, one device serves all, more slowly."""
    usual = jax.devices()[0]  # made before ours, so that it has as many threads as ever
    try:
        from jaxlib.xla_client import make_cpu_client
    except ImportError:
        return usual
    with _making, pool_threads(POOL_THREADS):
        client = make_cpu_client(asynchronous=False)
    return client.local_devices()[0]  # type: ignore[attr-defined]


@contextmanager
def pool_threads(number: int) -> Iterator[None]:
    """XLA asks the environment for the size of a pool, and only while it makes one."""
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before
