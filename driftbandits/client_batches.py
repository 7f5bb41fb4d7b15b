"""Splits many requests into batches that a service accepts."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Size(NamedTuple):
    """What the service limits in a batch."""

    places: int  # decisions, slates counted by their places
    own_arms: int  # that its decisions bring
    bytes: int

    def __add__(self, other: tuple[Any, ...]) -> "Size":
        return Size(*(one + another for one, another in zip(self, other, strict=True)))

    def fits(self) -> bool:
        return all(own <= most for own, most in zip(self, MOST, strict=True))


EMPTY = Size(0, 0, len('{"decisions": []}'))
MOST = Size(1000, 10_000, 4_000_000)  # of the service by default


def batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Splits requests, in their order; one that is too large for any batch is sent alone."""
    batch: list[dict[str, Any]] = []
    size = EMPTY
    for row in rows:
        own = size_of(row)
        if batch and not (size + own).fits():
            yield batch
            batch, size = [], EMPTY
        batch.append(row)
        size += own
    if batch:
        yield batch


def size_of(row: dict[str, Any]) -> Size:
    """Written with spaces and escapes, which is no shorter than what is sent."""
    written = len(json.dumps(row)) + len(", ")
    return Size(row.get("k", 1), len(row.get("arms", ())), written)
