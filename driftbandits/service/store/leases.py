"""Which worker owns which bandit: leases that expire by the database's clock.

Claiming a bandit increments its epoch, a fencing token that every write must present. A worker that
was paused while its lease expired can therefore no longer write.
"""

import sqlalchemy as sa

from driftbandits.service.store.records import Lease
from driftbandits.service.store.schema import bandits, now

row = bandits.c
worker, ttl = sa.bindparam("worker", type_=sa.Text), sa.bindparam("ttl", type_=sa.Double)
OWNED = row.owner == worker
ALIVE = row.until > now()
# Locked in the same order as by `append`, or the two could deadlock.
LOCKED_OWNED = row.id.in_(sa.select(row.id).where(OWNED).order_by(row.id).with_for_update())

CLAIM = (
    sa.update(bandits)
    .where(row.id == sa.bindparam("bandit"), sa.or_(row.owner.is_(None), OWNED, sa.not_(ALIVE)))
    .values(
        epoch=sa.case((sa.and_(OWNED, ALIVE), row.epoch), else_=row.epoch + 1),
        owner=worker,
        url=sa.bindparam("its_url"),
        until=now() + ttl,
    )
    .returning(row.epoch)
)
RENEW = (
    sa.update(bandits)
    .where(OWNED, LOCKED_OWNED)
    .values(until=now() + ttl)
    .returning(row.id, row.name)
)
RELEASE = sa.update(bandits).where(OWNED, LOCKED_OWNED).values(owner=None, url=None, until=None)
ORPHANS = (
    sa.select(row.name)
    .where(sa.or_(row.owner.is_(None), sa.not_(ALIVE)))
    .order_by(row.id)
    .limit(sa.bindparam("count", type_=sa.Integer))
)
LOCK_CURRENT = (
    sa.select(row.id)
    .where(row.id == sa.bindparam("bandit"), row.epoch == sa.bindparam("epoch"))
    .with_for_update()
)


def claim(
    connection: sa.Connection, bandit: int, worker: str, url: str, ttl: float
) -> Lease | None:
    values = {"bandit": bandit, "worker": worker, "its_url": url, "ttl": ttl}
    epoch = connection.scalar(CLAIM, values)
    return None if epoch is None else Lease(bandit, epoch)


def renew(connection: sa.Connection, worker: str, ttl: float) -> dict[int, str]:
    """Also revives leases that expired but that nobody took: their epoch is still current."""
    rows = connection.execute(RENEW, {"worker": worker, "ttl": ttl})
    return {row.id: row.name for row in rows}


def orphans(connection: sa.Connection, count: int) -> list[str]:
    return list(connection.scalars(ORPHANS, {"count": count}))


def release(connection: sa.Connection, worker: str) -> None:
    connection.execute(RELEASE, {"worker": worker})


def lock_if_current(connection: sa.Connection, lease: Lease) -> bool:
    """Whether the lease is current; if so, the bandit is locked until the transaction ends."""
    return connection.scalar(LOCK_CURRENT, lease._asdict()) is not None
