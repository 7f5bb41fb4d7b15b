"""Which worker owns which bandit: one lease per worker, which expires by the database's clock.

A bandit belongs to its owner while the owner's lease is alive; then any worker may claim it.
Claiming increments the bandit's epoch, a fencing token that every write must present. A worker that
was paused while its lease expired can therefore no longer write.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from driftbandits.service.store.records import Lease
from driftbandits.service.store.schema import KEPT, bandits, now, workers

row = bandits.c
worker, ttl = sa.bindparam("worker", type_=sa.Text), sa.bindparam("ttl", type_=sa.Double)
bandit = sa.bindparam("bandit", type_=sa.Integer)
OWNED = row.owner == worker
ALIVE = workers.c.until > now()
OWNER_LIVES = sa.exists().where(workers.c.name == row.owner, ALIVE)
FORGET_AFTER = 3600.0  # seconds since a lease expired; its worker died without releasing it

LOCK = sa.select(row.id).where(row.id == bandit).with_for_update()
CLAIM = (
    sa.update(bandits)
    .where(row.id == bandit, KEPT, sa.or_(OWNED, row.owner.is_(None), sa.not_(OWNER_LIVES)))
    .values(
        epoch=sa.case((sa.and_(OWNED, OWNER_LIVES), row.epoch), else_=row.epoch + 1),
        owner=worker,
    )
    .returning(row.epoch)
)
LIVES = sa.select(workers.c.name).where(workers.c.name == worker, ALIVE)
NEW = insert(workers).values(name=worker, url=sa.bindparam("its_url"), until=now() + ttl)
RENEW = NEW.on_conflict_do_update(  # in SQLite, too
    index_elements=["name"], set_={"url": NEW.excluded.url, "until": NEW.excluded.until}
)
FORGET = sa.delete(workers).where(
    workers.c.name.in_(
        sa.select(workers.c.name)
        .where(workers.c.until < now() - FORGET_AFTER)
        .with_for_update(skip_locked=True)
    )
)
OWNED_BANDITS = sa.select(row.id, row.name).where(OWNED).order_by(row.id)
FINGERPRINT = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(row.id), 0)).where(OWNED)
ORPHANS = (
    sa.select(row.name)
    .where(KEPT, sa.not_(OWNER_LIVES))
    .order_by(row.id)
    .limit(sa.bindparam("count", type_=sa.Integer))
)
LOCK_CURRENT = (
    sa.select(row.id).where(row.id == bandit, row.epoch == sa.bindparam("epoch")).with_for_update()
)
# Such a transaction may be in the middle of COPY, where no timeout of PostgreSQL reaches it.
TOO_OLD = 1.0  # seconds; another worker that claims the bandit at the same time is through sooner
locks = sa.table("pg_locks", sa.column("pid"), sa.column("transactionid"), sa.column("granted"))
sessions = sa.table("pg_stat_activity", sa.column("pid"), sa.column("xact_start"))
END_HOLDER = (
    sa.select(sa.func.pg_terminate_backend(locks.c.pid))
    .select_from(bandits)
    .join(locks, locks.c.transactionid == sa.literal_column("bandits.xmax"))
    .join(sessions, sessions.c.pid == locks.c.pid)
    .where(row.id == bandit, locks.c.granted, sa.not_(OWNER_LIVES))
    .where(sa.extract("epoch", sessions.c.xact_start) < now() - TOO_OLD)
)


def end_transaction_of_dead_owner(connection: sa.Connection, its_bandit: int) -> None:
    """In PostgreSQL: a host that froze or vanished in a transaction would lock its bandits."""
    if connection.dialect.name == "postgresql":
        connection.execute(END_HOLDER, {"bandit": its_bandit})


def claim(connection: sa.Connection, its_bandit: int, its_worker: str) -> Lease | None:
    """Claims a bandit in two statements: the second sees what was committed meanwhile."""
    end_transaction_of_dead_owner(connection, its_bandit)
    connection.execute(LOCK, {"bandit": its_bandit})
    epoch = connection.scalar(CLAIM, {"bandit": its_bandit, "worker": its_worker})
    return None if epoch is None else Lease(its_bandit, epoch)


def is_alive(connection: sa.Connection, its_worker: str) -> bool:
    return connection.scalar(LIVES, {"worker": its_worker}) is not None


def renew(connection: sa.Connection, its_worker: str, url: str, its_ttl: float) -> None:
    """Renews a lease, even an expired one: bandits that nobody claimed have the same epoch."""
    connection.execute(RENEW, {"worker": its_worker, "its_url": url, "ttl": its_ttl})


def forget_dead_workers(connection: sa.Connection) -> None:
    connection.execute(FORGET)


def owned(connection: sa.Connection, its_worker: str) -> dict[int, str]:
    return {row.id: row.name for row in connection.execute(OWNED_BANDITS, {"worker": its_worker})}


def fingerprint(connection: sa.Connection, its_worker: str) -> tuple[int, int]:
    """How many bandits a worker owns, and the sum of their ids."""
    count, total = connection.execute(FINGERPRINT, {"worker": its_worker}).one()
    return count, int(total)


def orphans(connection: sa.Connection, count: int) -> list[str]:
    return list(connection.scalars(ORPHANS, {"count": count}))


def release(connection: sa.Connection, its_worker: str) -> None:
    """Releases all bandits of a worker by ending its lease."""
    connection.execute(sa.delete(workers).where(workers.c.name == its_worker))


def lock_if_current(connection: sa.Connection, lease: Lease) -> bool:
    """Whether the lease is current; if so, the bandit is locked until the transaction ends."""
    return connection.scalar(LOCK_CURRENT, lease._asdict()) is not None
