"""Segments of snapshots: open decisions, some thousand each, which are written once.

A snapshot names those that it consists of; one that no snapshot names any more is deleted. Every
method is one transaction, as in the store.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import sqlalchemy as sa

from driftbandits.service.store import leases
from driftbandits.service.store.records import Lease, Segment
from driftbandits.service.store.schema import snapshot_segments

row = snapshot_segments.c
Connect = Callable[[], AbstractContextManager[sa.Connection]]


class SegmentTable:
    def __init__(self, reading: Connect, writing: Connect) -> None:
        self._reading, self._writing = reading, writing

    def write(self, lease: Lease, new: Sequence[Segment]) -> bool:
        """Returns False without a valid lease.

        In place of what a worker has left there that was stopped before its snapshot.
        """
        numbers = [segment.number for segment in new]
        with self._writing() as connection:
            if not leases.lock_if_current(connection, lease):
                return False
            connection.execute(these(lease.bandit, numbers))
            for number, blob in new:
                values = {"bandit": lease.bandit, "number": number, "blob": blob}
                connection.execute(sa.insert(snapshot_segments).values(values))
        return True

    def delete(self, lease: Lease, numbers: Sequence[int]) -> bool:
        """Returns False without a valid lease."""
        with self._writing() as connection:
            if not leases.lock_if_current(connection, lease):
                return False
            connection.execute(these(lease.bandit, numbers))
        return True

    def read(self, bandit: int, number: int) -> bytes | None:
        query = sa.select(row.blob).where(row.bandit == bandit, row.number == number)
        with self._reading() as connection:
            return connection.scalar(query)

    def numbers(self, bandit: int) -> list[int]:
        query = sa.select(row.number).where(row.bandit == bandit)
        with self._reading() as connection:
            return list(connection.scalars(query))


def these(bandit: int, numbers: Sequence[int]) -> sa.Delete:
    return sa.delete(snapshot_segments).where(row.bandit == bandit, row.number.in_(numbers))
