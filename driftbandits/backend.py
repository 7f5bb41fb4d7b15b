"""How XLA runs our programs: each with threads of its own, that no other one waits for.

Every core has a block of runs of its own. XLA would cut the blocks' loops in parts for the threads
of its pool, and spend more time on them than on the work; it asks NPROC for their number when the
pool is made. A program's thread also hands some of its work to the pool. So a pool has one thread,
and every block that is computed at the same time a pool.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import jax
from jaxlib import xla_client

os.environ.setdefault("NPROC", "1")
jax.config.update("jax_cpu_enable_async_dispatch", False)

_idle: list[jax.Device] = []
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
        own = _idle.pop()
    except IndexError:
        client = xla_client.make_cpu_client(asynchronous=False)
        own = client.local_devices()[0]  # type: ignore[attr-defined]
    _this_thread.device = own
    try:
        with jax.default_device(own):
            yield
    finally:
        _this_thread.device = None
        _idle.append(own)
