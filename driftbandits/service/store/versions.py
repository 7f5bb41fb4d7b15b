"""Versions of the tables: new ones are created, older ones upgraded, newer ones refused."""

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, OperationalError

from driftbandits.agents.old_policies import as_it_was
from driftbandits.check import InputError, fail
from driftbandits.service.store.schema import (
    SCHEMA_VERSION,
    SLATES_SINCE,
    bandits,
    corrections_index,
    events,
    keys,
    metadata,
    now,
    snapshots,
    versions,
)

ALWAYS_THERE = {table.name for table in (bandits, events, keys, snapshots, versions)}
OLD_LEASES = sa.select(sa.func.count()).where(sa.literal_column("until") > now())


class OlderWorkersError(InputError):
    """Workers of an older version still use the tables that must be upgraded."""


def create_tables(connection: sa.Connection) -> None:
    """Creates missing tables, upgrades old ones, all in one transaction."""
    if connection.dialect.name == "postgresql":  # in SQLite a writer is alone anyway
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7236001)"))
    versions.create(connection, checkfirst=True)
    version = check_version(connection)
    if version == SCHEMA_VERSION:
        return
    if version == 1:
        leave_version_1(connection)
    if version is not None and version < SLATES_SINCE:
        connection.execute(sa.text("ALTER TABLE events ADD COLUMN place SMALLINT"))
    if version is not None:
        keep_policies(connection)
    metadata.create_all(connection)
    corrections_index.create(connection, checkfirst=True)  # databases of 0.8 and before have none
    connection.execute(sa.delete(versions))
    connection.execute(sa.insert(versions).values(version=SCHEMA_VERSION))


def leave_version_1(connection: sa.Connection) -> None:
    """Upgrades from version 1, where every bandit had a lease; now its owner has one.

    A worker of version 1 that was asleep meanwhile can renew and claim nothing any more, as the
    columns are gone. Its epochs are valid until another worker claims its bandits.
    """
    if connection.dialect.name == "postgresql":  # nobody renews a lease while they are counted
        connection.execute(sa.text("LOCK TABLE bandits IN ACCESS EXCLUSIVE MODE"))
    count = connection.scalar(OLD_LEASES.select_from(bandits))
    if count:
        raise OlderWorkersError(
            f"a service of an older driftbandits uses the database ({count} bandits); stop all of "
            "its workers, then start this one, which upgrades the tables"
        )
    for column in ("url", "until"):
        connection.execute(sa.text(f"ALTER TABLE bandits DROP COLUMN {column}"))
    corrections_index.create(connection, checkfirst=True)


def keep_policies(connection: sa.Connection) -> None:
    """Calls policies that have changed by the names that they have now (until version 4)."""
    rows = connection.execute(sa.select(bandits.c.id, bandits.c.config)).all()
    for id, config in rows:
        changed = sa.update(bandits).where(bandits.c.id == id)
        kept = config_as_it_was(json.loads(config))
        connection.execute(changed.values(config=json.dumps(kept)))


def config_as_it_was(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a bandit of a database up to version 4."""
    return {**config, "policy": as_it_was(config["policy"])}


def is_written(connection: sa.Connection) -> bool:
    """Whether the tables are there, which only a driftbandits service creates."""
    try:
        names = sa.inspect(connection).get_table_names()
    except OperationalError:
        raise  # it cannot be reached
    except DatabaseError:  # a file of another kind
        return False
    return {*names} >= ALWAYS_THERE


def check_version(connection: sa.Connection) -> int | None:
    """Returns the version of the tables, None if there is none; refuses a newer one."""
    version = connection.scalar(sa.select(sa.func.max(versions.c.version)))
    if version is not None and version > SCHEMA_VERSION:
        rule = f"at most {SCHEMA_VERSION} for this version of driftbandits"
        fail("the database's schema version", rule, version)
    return version
