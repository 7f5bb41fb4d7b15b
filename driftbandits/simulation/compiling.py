"""Compiler options: one thread, no copies, the same results on every processor."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

import jax
import jax.monitoring

OPTIONS = {
    "xla_cpu_multi_thread_eigen": False,
    # Without it, every step would copy the weights that are both read and written.
    "xla_cpu_copy_insertion_use_region_analysis": True,
    # With it, x / sqrt(y) starts from the processor's own estimate, and no two kinds agree.
    "xla_cpu_enable_platform_dependent_math": False,
}
FOUND = "/jax/compilation_cache/cache_hits"

jit = partial(jax.jit, compiler_options=OPTIONS)


class CompiledPrograms(NamedTuple):
    programs: list[jax.stages.Compiled]
    movable: bool  # whether they can become bytes; XLA cannot do so with what came from bytes


def compile_all(lowered: Iterable[jax.stages.Lowered]) -> CompiledPrograms:
    with noticing(FOUND) as found:
        programs = [each.compile() for each in lowered]
    return CompiledPrograms(programs, movable=not found)


@contextmanager
def noticing(wanted: str) -> Iterator[list[str]]:
    """Collects the JAX events with this name in this thread."""
    found, here = [], threading.get_ident()

    def listener(event: str, **_: str | int) -> None:
        if event == wanted and threading.get_ident() == here:
            found.append(event)

    jax.monitoring.register_event_listener(listener)
    try:
        yield found
    finally:
        with suppress(AssertionError, ValueError):  # somebody has cleared all listeners
            jax.monitoring.unregister_event_listener(listener)
