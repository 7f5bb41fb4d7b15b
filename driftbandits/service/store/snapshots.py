"""Snapshots of what a bandit has learned, so that its log need not be replayed from the start."""

import sqlalchemy as sa

from driftbandits.service.store.records import Snapshot
from driftbandits.service.store.schema import snapshot_changes, snapshots

KEPT = 2  # the second in case the newest cannot be read

row, change = snapshots.c, snapshot_changes.c
bandit, seq, blob = (
    sa.bindparam("its_bandit", type_=sa.Integer),
    sa.bindparam("its_seq", type_=sa.BigInteger),
    sa.bindparam("its_blob", type_=sa.LargeBinary),
)
OLDEST_KEPT = (
    sa.select(row.seq)
    .where(row.bandit == bandit)
    .order_by(row.seq.desc())
    .limit(1)
    .offset(KEPT - 1)
    .scalar_subquery()
)
WRITE = [
    sa.delete(snapshots).where(row.bandit == bandit, row.seq == seq),
    sa.insert(snapshots).values(bandit=bandit, seq=seq, blob=blob),
    sa.delete(snapshots).where(row.bandit == bandit, row.seq < OLDEST_KEPT),
    sa.delete(snapshot_changes).where(change.bandit == bandit, change.base < OLDEST_KEPT),
    sa.delete(snapshot_changes).where(change.bandit == bandit, change.base == seq),
]


def write(connection: sa.Connection, new: Snapshot) -> None:
    values = {"its_bandit": new.lease.bandit, "its_seq": new.seq, "its_blob": new.blob}
    for statement in WRITE:
        connection.execute(statement, values)


def read(connection: sa.Connection, its_bandit: int, newest: int) -> tuple[int, bytes] | None:
    query = sa.select(row.seq, row.blob).where(row.bandit == its_bandit)
    found = connection.execute(query.order_by(row.seq.desc()).limit(1).offset(newest)).first()
    return None if found is None else (found.seq, found.blob)


def read_changes(
    connection: sa.Connection, its_bandit: int, its_base: int
) -> list[tuple[int, bytes]]:
    """Reads the changes that 0.9.0 wrote."""
    query = sa.select(change.seq, change.blob).order_by(change.seq)
    rows = connection.execute(query.where(change.bandit == its_bandit, change.base == its_base))
    return [(found.seq, found.blob) for found in rows]


def is_kept(connection: sa.Connection, new: Snapshot) -> bool:
    """Whether it reads back as it was written."""
    query = sa.select(row.blob).where(row.bandit == new.lease.bandit, row.seq == new.seq)
    return connection.scalar(query) == new.blob
