"""The store: bandits, their logs and snapshots, leases and keys, in SQLite or PostgreSQL.

Every method is one transaction on its own connection, so threads may share a store. If the database
cannot be reached, it raises SQLAlchemy's OperationalError or InterfaceError; the next call tries
again.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from math import inf
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from driftbandits.agents.old_policies import SAME_SINCE
from driftbandits.check import fail
from driftbandits.service.store import deletion, event_log, health, key_table, leases, snapshots
from driftbandits.service.store.database import connect, redacted, without_transactions
from driftbandits.service.store.direct import DirectTransactions
from driftbandits.service.store.records import (
    BanditRow,
    Entry,
    Event,
    Found,
    KeyRow,
    Lease,
    LoggedDecision,
    Snapshot,
    as_bandit,
)
from driftbandits.service.store.schema import (
    KEPT,
    SCHEMA_VERSION,
    SLATES_SINCE,
    bandits,
    events,
    now,
    workers,
)
from driftbandits.service.store.segments import SegmentTable
from driftbandits.service.store.versions import (
    OlderWorkersError,
    check_version,
    config_as_it_was,
    create_tables,
    is_written,
)

ROW = [bandits.c[name] for name in ("id", "name", "config", "created")]
ALIVE = sa.func.coalesce(leases.ALIVE, sa.false())
ROWS = sa.select(*ROW, workers.c.name, workers.c.url, ALIVE).outerjoin_from(
    bandits, workers, workers.c.name == bandits.c.owner
)
ROWS_OF_VERSION_1 = sa.select(*ROW, sa.null(), sa.null(), sa.false())  # only read, as nobody's
PATIENCE = 5.0  # seconds, as leases of older versions last for three


class Store:
    """Everything that the service stores."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Opens the database; tables that are missing are created or, if only read, refused."""
        self._engine = connect(url, read_only)
        self._writer = event_log.Writer(self._engine.dialect)
        self._reader = event_log.Reader()
        self._direct = DirectTransactions(self._engine)
        self._writes = self._engine.execution_options(writes=True)
        self._reads = without_transactions(self._engine)
        self._rows, self._has_corrections = ROWS, True
        self._has_old_policies = False
        self.segments = SegmentTable(self._reading, self._writing)
        try:
            if read_only:
                self._check_tables(url)
            else:
                self._create_tables()
            self._file = health.database_file(self._engine)
            self.folder = self._file.folder if self._file else None  # none with PostgreSQL
        except BaseException:
            self.close()
            raise

    def _check_tables(self, url: str) -> None:
        with self._reading() as connection:
            if not is_written(connection):
                fail("database", "one that a driftbandits service wrote", redacted(url))
            version = check_version(connection) or SCHEMA_VERSION
            if version == 1:
                self._rows, self._has_corrections = ROWS_OF_VERSION_1, False
            self._reader = event_log.Reader(has_places=version >= SLATES_SINCE)
            self._has_old_policies = version < SAME_SINCE

    def _create_tables(self) -> None:
        """Waits for the leases of an older worker that was killed, but not for one at work."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with self._writing() as connection:
                    return create_tables(connection)
            except OlderWorkersError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def _reading(self) -> AbstractContextManager[sa.Connection]:
        return self._reads.connect()

    def _writing(self) -> AbstractContextManager[sa.Connection]:
        return self._writes.begin()

    # bandits

    def create_bandit(self, name: str, config: dict[str, Any]) -> BanditRow | None:
        """Creates a bandit; returns None if the name is taken."""
        values = {"name": name, "config": json.dumps(config), "created": now()}
        try:
            with self._writing() as connection:
                insert = sa.insert(bandits).values(values).returning(*ROW)
                return as_bandit([*connection.execute(insert).one(), None, None, False])
        except IntegrityError:
            return None

    def bandits(self) -> list[BanditRow]:
        """All, the oldest first."""
        with self._reading() as connection:
            rows = connection.execute(self._rows.where(KEPT).order_by(bandits.c.id))
            return [self._as_bandit(row) for row in rows]

    def bandit(self, name: str) -> BanditRow | None:
        with self._reading() as connection:
            row = connection.execute(self._rows.where(bandits.c.name == name)).first()
            return None if row is None else self._as_bandit(row)

    def _as_bandit(self, row: Sequence[Any]) -> BanditRow:
        found = as_bandit(row)
        if not self._has_old_policies:
            return found
        return found._replace(config=config_as_it_was(found.config))

    def is_kept(self, bandit: int) -> bool:
        """Whether a bandit exists; False once it is deleted, even if its log is not gone yet."""
        with self._reading() as connection:
            return deletion.is_kept(connection, bandit)

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
        """Takes a bandit that is free, or the worker's own, or whose owner's lease has expired.

        The worker's own lease is renewed before, if need be.
        """
        with self._reading() as connection:
            is_alive = leases.is_alive(connection, worker)
        if not is_alive:
            self.renew(worker, url, ttl)
        with self._writing() as connection:
            return leases.claim(connection, bandit, worker)

    def renew(self, worker: str, url: str, ttl: float) -> None:
        """Extends the lease of a worker, which is that of all its bandits."""
        with self._writing() as connection:
            leases.renew(connection, worker, url, ttl)

    def forget_dead_workers(self) -> None:
        """Forgets workers whose leases expired long ago."""
        with self._writing() as connection:
            leases.forget_dead_workers(connection)

    def owned(self, worker: str) -> dict[int, str]:
        """The bandits that a worker claimed last, names by id."""
        with self._reading() as connection:
            return leases.owned(connection, worker)

    def fingerprint(self, worker: str) -> tuple[int, int]:
        """How many bandits a worker owns and the sum of their ids, to notice a change cheaply."""
        with self._reading() as connection:
            return leases.fingerprint(connection, worker)

    def orphans(self, count: int) -> list[str]:
        """Names of up to `count` bandits that no living worker owns, the oldest first."""
        with self._reading() as connection:
            return leases.orphans(connection, count)

    def release(self, worker: str) -> None:
        """Ends the lease of a worker, which frees its bandits."""
        with self._writing() as connection:
            leases.release(connection, worker)

    # logs

    def append(self, entries: list[Entry]) -> set[int]:
        """Writes events of many bandits.

        Returns the ids of bandits that other workers own by now: of these, nothing is written. A
        second decision or a second outcome for one id is an IntegrityError; then nothing is written
        at all.
        """
        with self._direct.begin() as execute:
            return self._writer.append(execute, entries)

    def events(self, bandit: int, after: int, limit: int = 10_000) -> list[Event]:
        """The first `limit` events after a seq, in order."""
        with self._reading() as connection:
            return self._reader.page(connection, bandit, after, limit)

    def find(self, bandit: int, ids: list[str]) -> Found:
        """The decision, and the outcome if any, of each id in the log."""
        with self._reading() as connection:
            return self._reader.find(connection, bandit, ids)

    def last_decisions(self, bandit: int, count: int) -> list[LoggedDecision]:
        """The newest `count` decisions with their outcomes, the oldest first."""
        with self._reading() as connection:
            return self._reader.last_decisions(connection, bandit=bandit, after=0, limit=count)

    def log(self, bandit: int, chunk: int = 10_000) -> Iterator[list[LoggedDecision]]:
        """All decisions with their outcomes, the oldest first, in pages; each is read by itself."""
        after, full = 0, True
        while full:
            with self._reading() as connection:
                page = self._reader.first_decisions(
                    connection, bandit=bandit, after=after, limit=chunk
                )
            if page:
                yield page
                after = page[-1][0].seq
            full = len(page) == chunk

    def corrections(self, bandit: int, until: float = inf) -> dict[str, Event]:
        """The last correction of each id that has one, up to a time."""
        if not self._has_corrections:
            return {}
        with self._reading() as connection:
            found = self._reader.corrections(connection, bandit)
        return {event.id: event for event in found if event.time <= until}

    def added_arms(self, bandit: int, after: int, until: int) -> list[str]:
        """Names of the arms that were added in this part of the log, all of which is read."""
        seq = events.c.seq
        query = (
            sa.select(events.c.id)
            .where(events.c.bandit == bandit, seq > after, seq <= until)
            .where(events.c.kind == "arm_added")
            .order_by(seq)
        )
        with self._reading() as connection:
            return list(connection.scalars(query))

    # snapshots

    def write_snapshots(self, new: list[Snapshot]) -> set[int]:
        """Writes snapshots; the newest two of each bandit are stored.

        Returns the ids of bandits without a valid lease: of these, nothing is written.
        """
        lost: set[int] = set()
        with self._writing() as connection:
            for snapshot in sorted(new, key=itemgetter(0)):  # locked as by `append`
                if leases.lock_if_current(connection, snapshot.lease):
                    snapshots.write(connection, snapshot)
                else:
                    lost.add(snapshot.lease.bandit)
        return lost

    def read_snapshot(self, bandit: int, newest: int = 0) -> tuple[int, bytes] | None:
        """The newest snapshot and its seq, or with `newest=1` the one before."""
        with self._reading() as connection:
            return snapshots.read(connection, bandit, newest)

    def read_changes(self, bandit: int, base: int) -> list[tuple[int, bytes]]:
        """What has changed since a snapshot of 0.9.0, in order, each with its seq."""
        with self._reading() as connection:
            return snapshots.read_changes(connection, bandit, base)

    def are_kept(self, written: list[Snapshot]) -> list[bool]:
        """Whether each reads back as it was written."""
        with self._reading() as connection:
            return [snapshots.is_kept(connection, snapshot) for snapshot in written]

    # keys

    def add_key(self, digest: str, role: str, label: str) -> None:
        with self._writing() as connection:
            key_table.add(connection, digest, role, label)

    def keys(self) -> list[KeyRow]:
        """All, the oldest first."""
        with self._reading() as connection:
            return key_table.all_keys(connection)

    def key_role(self, digest: str) -> str | None:
        with self._reading() as connection:
            return key_table.role_of(connection, digest)

    def revoke_key(self, digest_prefix: str) -> bool:
        """Revokes the key whose digest has this prefix; False if there is none."""
        with self._writing() as connection:
            return key_table.revoke(connection, digest_prefix)

    def check_health(self) -> None:
        """Raises if nothing can be written, or what is written would be lost."""
        if self._file is not None:
            self._file.check()
        with self._writing() as connection:
            connection.execute(health.WRITE)

    def close(self) -> None:
        self._direct.close()
        self._engine.dispose()
