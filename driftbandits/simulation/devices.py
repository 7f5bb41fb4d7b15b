"""JAX devices of our own, each with its own thread pool.

Every core computes its own block of runs. XLA would divide the loops of a block among the threads
of its pool, which costs more than it saves. A program also hands some of its work to the pool. So
each pool has one thread, and every block that is computed at the same time has its own pool. The
caller's devices and JAX's options are not changed.
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
    """Computations of this thread in this context use a device that no other thread has.

    A new device is made if none is idle, so there are as many as threads that compute together.
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
    """The device that all agents of this process share."""
    with _making:
        return _agents_device()


@cache
def _agents_device() -> jax.Device:
    return new_device() if jax.default_backend() == "cpu" else jax.devices()[0]


def new_device() -> jax.Device:
    """Makes a device by a private function of JAX; without it, all share one, more slowly."""
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
    """Sets the size of a pool, which XLA reads from the environment while it makes one."""
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before
