"""Deleting bandits: the name is free at once, the log goes page by page.

Until then the row stays under a name that no bandit can have, owned by a worker that does not
exist: so nobody finds, adopts or writes it. The row is deleted last, so that nothing is left behind
if the service ends before.
"""

import sqlalchemy as sa

from driftbandits.service.store import leases
from driftbandits.service.store.records import Lease
from driftbandits.service.store.schema import (
    DELETED,
    KEPT,
    bandits,
    events,
    snapshot_changes,
    snapshot_segments,
    snapshots,
)

SEGMENTS = 4  # deleted at a time, as each may have a few megabytes

row = bandits.c
ONE_DELETED = sa.select(row.id).where(row.owner == DELETED).order_by(row.id).limit(1)


def mark(connection: sa.Connection, lease: Lease) -> bool:
    """Returns False without a valid lease."""
    if not leases.lock_if_current(connection, lease):
        return False
    update = sa.update(bandits).where(row.id == lease.bandit)
    values = {"name": f"{DELETED} {lease.bandit}", "owner": DELETED}
    connection.execute(update.values(epoch=row.epoch + 1, **values))
    return True


def is_kept(connection: sa.Connection, bandit: int) -> bool:
    return connection.scalar(sa.select(row.id).where(row.id == bandit, KEPT)) is not None


def delete_page(connection: sa.Connection, size: int) -> bool:
    """Deletes some events of a deleted bandit or, if it has none, the rest of it."""
    bandit = connection.scalar(ONE_DELETED)
    if bandit is None:
        return False
    its_events = events.c.bandit == bandit
    first = connection.scalar(sa.select(sa.func.min(events.c.seq)).where(its_events))
    if first is not None:
        connection.execute(sa.delete(events).where(its_events, events.c.seq < first + size))
        return True
    its_segments = snapshot_segments.c.bandit == bandit
    number = snapshot_segments.c.number
    some = sa.select(number).where(its_segments).limit(SEGMENTS)
    if connection.execute(
        sa.delete(snapshot_segments).where(its_segments, number.in_(some))
    ).rowcount:
        return True
    for table in (snapshot_changes, snapshots):
        connection.execute(sa.delete(table).where(table.c.bandit == bandit))
    connection.execute(sa.delete(bandits).where(row.id == bandit))
    return True
