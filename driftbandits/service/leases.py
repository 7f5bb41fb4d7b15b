"""Who looks after which bandit: leases that run out by the database's clock.

Whoever claims a bandit raises its epoch, and everything that writes names the epoch that it knows.
So a worker that was asleep while its lease ran out can no longer write, whatever it believes.
"""

import sqlalchemy as sa

from driftbandits.service.records import Lease
from driftbandits.service.tables import bandits, now

row = bandits.c
worker, ttl = sa.bindparam("worker", type_=sa.Text), sa.bindparam("ttl", type_=sa.Double)
OURS = row.owner == worker
ALIVE = row.until > now()
# In the order in which `append` locks bandits; otherwise the two could wait for each other.
ALL_OURS = row.id.in_(sa.select(row.id).where(OURS).order_by(row.id).with_for_update())

CLAIM = (
    sa.update(bandits)
    .where(row.id == sa.bindparam("bandit"), sa.or_(row.owner.is_(None), OURS, sa.not_(ALIVE)))
    .values(
        epoch=sa.case((sa.and_(OURS, ALIVE), row.epoch), else_=row.epoch + 1),
        owner=worker,
        url=sa.bindparam("its_url"),
        until=now() + ttl,
    )
    .returning(row.epoch)
)
RENEW = (
    sa.update(bandits).where(OURS, ALL_OURS).values(until=now() + ttl).returning(row.id, row.name)
)
RELEASE = sa.update(bandits).where(OURS, ALL_OURS).values(owner=None, url=None, until=None)
ORPHANS = (
    sa.select(row.name)
    .where(sa.or_(row.owner.is_(None), sa.not_(ALIVE)))
    .order_by(row.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
HOLD = (
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
    """A lease that has run out but that nobody took lives again: its epoch is still the last."""
    rows = connection.execute(RENEW, {"worker": worker, "ttl": ttl})
    return {row.id: row.name for row in rows}


def orphans(connection: sa.Connection, most: int) -> list[str]:
    return list(connection.scalars(ORPHANS, {"most": most}))


def release(connection: sa.Connection, worker: str) -> None:
    connection.execute(RELEASE, {"worker": worker})


def hold(connection: sa.Connection, lease: Lease) -> bool:
    """Whether the lease is the last one; nobody can claim the bandit until the transaction ends."""
    return connection.scalar(HOLD, lease._asdict()) is not None
