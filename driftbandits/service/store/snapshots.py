"""Snapshots of what a bandit has learned, so that its log need not be replayed from the start."""

import sqlalchemy as sa

from driftbandits.service.store.schema import snapshots

KEPT = 2  # the second in case the newest cannot be read

row = snapshots.c
bandit, seq = (
    sa.bindparam("its_bandit", type_=sa.Integer),
    sa.bindparam("its_seq", type_=sa.BigInteger),
)
OLDEST_KEPT = (
    sa.select(row.seq)
    .where(row.bandit == bandit)
    .order_by(row.seq.desc())
    .limit(1)
    .offset(KEPT - 1)
)
SAME = sa.delete(snapshots).where(row.bandit == bandit, row.seq == seq)
OLD = sa.delete(snapshots).where(row.bandit == bandit, row.seq < OLDEST_KEPT.scalar_subquery())


def write(connection: sa.Connection, its_bandit: int, its_seq: int, blob: bytes) -> None:
    values = {"its_bandit": its_bandit, "its_seq": its_seq}
    connection.execute(SAME, values)
    connection.execute(sa.insert(snapshots).values(bandit=its_bandit, seq=its_seq, blob=blob))
    connection.execute(OLD, values)


def read(connection: sa.Connection, its_bandit: int, newest: int) -> tuple[int, bytes] | None:
    query = sa.select(row.seq, row.blob).where(row.bandit == its_bandit)
    found = connection.execute(query.order_by(row.seq.desc()).limit(1).offset(newest)).first()
    return None if found is None else (found.seq, found.blob)
