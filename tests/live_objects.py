"""How many objects of a kind are alive, for tests that nothing stays behind."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def count(kind: str) -> int:
    """Of the types with this name, without collecting anything first."""
    return sum(type(each).__name__ == kind for each in gc.get_objects())


@contextmanager
def without_collector() -> Iterator[None]:
    """What is in a cycle stays meanwhile, however many objects there are."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
