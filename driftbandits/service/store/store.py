"""The store: bandits, their logs and snapshots, leases and keys, in SQLite or PostgreSQL.

Every method is one transaction on its own connection, so threads may share a store. If the database
cannot be reached, it raises SQLAlchemy's OperationalError or InterfaceError; the next call tries
again.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from math import inf
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from driftbandits.check import fail
from driftbandits.service.store import deletion, event_log, health, leases, snapshots
from driftbandits.service.store.database import connect, redacted
from driftbandits.service.store.records import (
    BanditRow,
    Entry,
    Event,
    Found,
    KeyRow,
    Lease,
    LoggedDecision,
)
from driftbandits.service.store.schema import (
    bandits,
    check_version,
    create_tables,
    events,
    is_written,
    keys,
    now,
)

ROW = [bandits.c[name] for name in ("id", "name", "config", "created", "owner", "url")]
ALIVE = sa.func.coalesce(leases.ALIVE, sa.false())


class Store:
    """Everything that the service keeps."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Opens the database; tables that are missing are created or, if only read, refused."""
        self._engine = connect(url, read_only)
        self._writer = event_log.Writer(self._engine.dialect)
        self._writes = self._engine.execution_options(writes=True)
        try:
            if read_only:
                with self._reading() as connection:
                    if not is_written(connection):
                        fail("database", "one that a driftbandits service wrote", redacted(url))
                    check_version(connection)
            else:
                with self._writing() as connection:
                    create_tables(connection)
            self._file = database_file(self._engine)
        except BaseException:
            self.close()
            raise

    def _reading(self) -> AbstractContextManager[sa.Connection]:
        return self._engine.connect()

    def _writing(self) -> AbstractContextManager[sa.Connection]:
        return self._writes.begin()

    # bandits

    def create_bandit(self, name: str, config: dict[str, Any]) -> BanditRow | None:
        """None if the name is taken."""
        values = {"name": name, "config": json.dumps(config), "created": now()}
        try:
            with self._writing() as connection:
                insert = sa.insert(bandits).values(values).returning(*ROW, ALIVE)
                return as_bandit(connection.execute(insert).one())
        except IntegrityError:
            return None

    def bandits(self) -> list[BanditRow]:
        """All, the oldest first."""
        with self._reading() as connection:
            query = sa.select(*ROW, ALIVE).where(deletion.KEPT).order_by(bandits.c.id)
            return [as_bandit(row) for row in connection.execute(query)]

    def bandit(self, name: str) -> BanditRow | None:
        with self._reading() as connection:
            query = sa.select(*ROW, ALIVE).where(bandits.c.name == name)
            row = connection.execute(query).first()
            return None if row is None else as_bandit(row)

    def delete_bandit(self, lease: Lease) -> bool:
        """Frees a bandit's name at once; False without a valid lease.

        Its log and snapshots, which may be large, go with `delete_page`.
        """
        with self._writing() as connection:
            return deletion.mark(connection, lease)

    def delete_page(self, size: int) -> bool:
        """Deletes so many events of a deleted bandit, or its row; False if nothing is left."""
        with self._writing() as connection:
            return deletion.delete_page(connection, size)

    # leases

    def claim(self, bandit: int, worker: str, url: str, ttl: float) -> Lease | None:
        """Takes a bandit that is free, or the worker's own, or whose lease has expired."""
        with self._writing() as connection:
            return leases.claim(connection, bandit, worker, url, ttl)

    def renew(self, worker: str, ttl: float) -> dict[int, str]:
        """Extends all leases of a worker; returns the bandits that it owns, names by id."""
        with self._writing() as connection:
            return leases.renew(connection, worker, ttl)

    def orphans(self, count: int) -> list[str]:
        """Names of up to `count` bandits without an owner, the oldest first."""
        with self._reading() as connection:
            return leases.orphans(connection, count)

    def release(self, worker: str) -> None:
        """Gives up all leases of a worker."""
        with self._writing() as connection:
            leases.release(connection, worker)

    # logs

    def append(self, entries: list[Entry]) -> set[int]:
        """Writes events of many bandits.

        Returns the ids of bandits that other workers own by now: of these, nothing is written. A
        second decision or a second outcome for one id is an IntegrityError; then nothing is written
        at all.
        """
        with self._writing() as connection:
            return self._writer.append(connection, entries)

    def events(self, bandit: int, after: int, limit: int = 10_000) -> list[Event]:
        """The first `limit` events after a seq, in order."""
        with self._reading() as connection:
            return event_log.page(connection, bandit, after, limit)

    def find(self, bandit: int, ids: list[str]) -> Found:
        """The decision, and the outcome if any, of each id in the log."""
        with self._reading() as connection:
            return event_log.find(connection, bandit, ids)

    def last_decisions(self, bandit: int, count: int) -> list[LoggedDecision]:
        """The newest `count` decisions with their outcomes, the oldest first."""
        query = event_log.LAST_DECISIONS
        with self._reading() as connection:
            return event_log.decision_page(connection, query, bandit=bandit, after=0, limit=count)

    def log(self, bandit: int, chunk: int = 10_000) -> Iterator[list[LoggedDecision]]:
        """All decisions with their outcomes, the oldest first, in pages; each is read by itself."""
        query, after = event_log.FIRST_DECISIONS, 0
        full = True
        while full:
            with self._reading() as connection:
                page = event_log.decision_page(
                    connection, query, bandit=bandit, after=after, limit=chunk
                )
            if page:
                yield page
                after = page[-1][0].seq
            full = len(page) == chunk

    def corrections(self, bandit: int, until: float = inf) -> dict[str, Event]:
        """The last correction of each id that has one, up to a time."""
        with self._reading() as connection:
            found = event_log.corrections(connection, bandit)
        return {event.id: event for event in found if event.time <= until}

    def added_arms(self, bandit: int) -> list[str]:
        """Names of the arms that were added after the bandit was created, in order."""
        query = (
            sa.select(events.c.id)
            .where(events.c.bandit == bandit, events.c.kind == "arm_added")
            .order_by(events.c.seq)
        )
        with self._reading() as connection:
            return list(connection.scalars(query))

    # snapshots

    def write_snapshot(self, lease: Lease, seq: int, blob: bytes) -> bool:
        """Keeps the newest two; False without a valid lease."""
        with self._writing() as connection:
            if not leases.lock_if_current(connection, lease):
                return False
            snapshots.write(connection, lease.bandit, seq, blob)
            return True

    def read_snapshot(self, bandit: int, newest: int = 0) -> tuple[int, bytes] | None:
        """The newest snapshot and its seq, or with `newest=1` the one before."""
        with self._reading() as connection:
            return snapshots.read(connection, bandit, newest)

    # keys

    def add_key(self, digest: str, role: str, label: str) -> None:
        values = {"digest": digest, "role": role, "label": label, "created": now()}
        with self._writing() as connection:
            connection.execute(sa.insert(keys).values(values))

    def keys(self) -> list[KeyRow]:
        """All, the oldest first."""
        with self._reading() as connection:
            query = sa.select(keys).order_by(keys.c.created, keys.c.digest)
            return [KeyRow._make(row) for row in connection.execute(query)]

    def key_role(self, digest: str) -> str | None:
        with self._reading() as connection:
            return connection.scalar(sa.select(keys.c.role).where(keys.c.digest == digest))

    def revoke_key(self, digest_prefix: str) -> bool:
        """Revokes the key whose digest has this prefix; False if there is none."""
        with self._writing() as connection:
            beginning = sa.func.substr(keys.c.digest, 1, len(digest_prefix))
            query = sa.select(keys.c.digest).where(beginning == digest_prefix)
            found = connection.scalars(query).all()
            if len(found) > 1 or not digest_prefix:
                fail("digest", "the start of exactly one key's digest", digest_prefix)
            connection.execute(sa.delete(keys).where(keys.c.digest.in_(found)))
            return bool(found)

    def check_health(self) -> None:
        """Raises if nothing can be written, or what is written would be lost."""
        if self._file is not None:
            self._file.check()
        with self._writing() as connection:
            connection.execute(health.WRITE)

    def close(self) -> None:
        self._engine.dispose()


def as_bandit(row: Sequence[Any]) -> BanditRow:
    id, name, config, created, owner, url, alive = row
    return BanditRow(id, name, json.loads(config), created, owner, url, bool(alive))


def database_file(engine: sa.Engine) -> health.DatabaseFile | None:
    """None where the database is a server's."""
    if engine.dialect.name != "sqlite":
        return None
    return health.DatabaseFile(Path(engine.url.database or ""))
