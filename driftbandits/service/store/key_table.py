"""The keys of the service, by their digests."""

import sqlalchemy as sa

from driftbandits.check import fail
from driftbandits.service.store.records import KeyRow
from driftbandits.service.store.schema import keys, now

ROLE = sa.select(keys.c.role).where(keys.c.digest == sa.bindparam("its_digest"))


def add(connection: sa.Connection, digest: str, role: str, label: str) -> None:
    values = {"digest": digest, "role": role, "label": label, "created": now()}
    connection.execute(sa.insert(keys).values(values))


def all_keys(connection: sa.Connection) -> list[KeyRow]:
    query = sa.select(keys).order_by(keys.c.created, keys.c.digest)
    return [KeyRow._make(row) for row in connection.execute(query)]


def role_of(connection: sa.Connection, digest: str) -> str | None:
    return connection.scalar(ROLE, {"its_digest": digest})


def revoke(connection: sa.Connection, digest_prefix: str) -> bool:
    beginning = sa.func.substr(keys.c.digest, 1, len(digest_prefix))
    found = connection.scalars(sa.select(keys.c.digest).where(beginning == digest_prefix)).all()
    if len(found) > 1 or not digest_prefix:
        fail("digest", "the start of exactly one key's digest", digest_prefix)
    connection.execute(sa.delete(keys).where(keys.c.digest.in_(found)))
    return bool(found)
