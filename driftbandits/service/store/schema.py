"""The tables of the store, the same in SQLite and PostgreSQL."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

SCHEMA_VERSION = 5
SLATES_SINCE = 4  # a column for the place on a slate
DECISION, OUTCOME = 1, 2

metadata = sa.MetaData()
# Identifiers are only compared for equality: by their bytes, whatever the server's locale.
name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
real: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")

versions = sa.Table("schema_version", metadata, sa.Column("version", sa.Integer, nullable=False))

bandits = sa.Table(
    "bandits",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", name, nullable=False, unique=True),
    sa.Column("config", sa.Text, nullable=False),  # JSON
    sa.Column("created", real, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),  # of the last event
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("owner", name, index=True),  # the worker that claimed it last
    sqlite_autoincrement=True,  # ids of deleted bandits are not reused, so old leases stay void
)
DELETED = "\x1fdeleted"  # in place of an owner: names have no control characters
KEPT = sa.or_(bandits.c.owner.is_(None), bandits.c.owner != DELETED)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("name", name, primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("until", real, nullable=False),  # when the lease expires, by the database's clock
)

# Each id has one decision and one outcome. Changes of arms have no part, so they never collide.
PART = f"""CASE kind WHEN 'decision' THEN {DECISION}
WHEN 'reward' THEN {OUTCOME} WHEN 'expiry' THEN {OUTCOME} END"""

events = sa.Table(
    "events",
    metadata,
    sa.Column("bandit", sa.ForeignKey("bandits.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("time", real, nullable=False),
    sa.Column("id", name, nullable=False),
    sa.Column("arm", sa.Integer),
    sa.Column("probability", real),
    sa.Column("law", sa.LargeBinary),
    sa.Column("context", sa.LargeBinary),
    sa.Column("available", sa.LargeBinary),
    sa.Column("reward", real),
    sa.Column("place", sa.SmallInteger),  # on a slate
    sa.Column("part", sa.SmallInteger, sa.Computed(PART, persisted=True)),
    sa.Index("one_decision_one_outcome", "bandit", "id", "part", unique=True),
    sqlite_with_rowid=False,  # stored in the order of (bandit, seq)
)
IS_CORRECTION = events.c.kind == "correction"
corrections_index = sa.Index(
    "corrections",
    events.c.bandit,
    events.c.seq,
    sqlite_where=IS_CORRECTION,
    postgresql_where=IS_CORRECTION,
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("bandit", sa.ForeignKey("bandits.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("blob", sa.LargeBinary, nullable=False),
)

# What has changed since a snapshot of 0.9.0; it is only read.
snapshot_changes = sa.Table(
    "snapshot_changes",
    metadata,
    sa.Column("bandit", sa.ForeignKey("bandits.id"), primary_key=True),
    sa.Column("base", sa.BigInteger, primary_key=True, autoincrement=False),  # its seq
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("blob", sa.LargeBinary, nullable=False),
)

# Open decisions, which snapshots refer to.
snapshot_segments = sa.Table(
    "snapshot_segments",
    metadata,
    sa.Column("bandit", sa.ForeignKey("bandits.id"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("blob", sa.LargeBinary, nullable=False),
)

keys = sa.Table(
    "service_keys",
    metadata,
    sa.Column("digest", name, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("created", real, nullable=False),
)


class now(FunctionElement[float]):  # noqa: N801  # a function of SQL
    """Unix seconds by the database's clock when a row is evaluated."""

    type = sa.Double()
    inherit_cache = True


@compiles(now, "sqlite")
def sqlite_now(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def postgresql_now(element: now, compiler: Any, **options: Any) -> str:
    # now() is the start of the transaction, before it waited for the row's lock
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
