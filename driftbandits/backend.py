"""How XLA runs our programs: each with threads of its own, that no other one waits for.

Every core has a block of runs of its own. XLA would cut the blocks' loops in parts for the threads
of its pool, and spend more time on them than on the work; it asks NPROC for their number when the
pool is made. A program's thread also hands some of its work to the pool. So a pool has one thread,
and every block that is computed at the same time a pool.
"""

import heapq
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import jax

os.environ.setdefault("NPROC", "1")
jax.config.update("jax_cpu_enable_async_dispatch", False)

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


def new_device() -> jax.Device:
    """JAX has no public function for it; without it, one device serves all, more slowly."""
    try:
        from jaxlib.xla_client import make_cpu_client
    except ImportError:
        return jax.devices()[0]
    return make_cpu_client(asynchronous=False).local_devices()[0]  # type: ignore[attr-defined]
