"""Segments of snapshots: written and deleted with a valid lease only, by bandit and number."""

import pytest
import sqlalchemy as sa

from driftbandits.service.store.records import Entry, Segment
from driftbandits.service.store.schema import SCHEMA_VERSION
from driftbandits.service.store.store import Store
from tests.service.store import databases
from tests.service.store.databases import decisions, new, write_snapshot

postgres, database, store = databases.postgres, databases.database, databases.store
LARGE = bytes(range(256)) * 8192  # 2 MB


def numbers(store: Store, bandit: int) -> list[int]:
    return sorted(store.segments.numbers(bandit))


def test_they_are_read_as_they_were_written(store: Store) -> None:
    lease, other = new(store), new(store, "other")
    assert store.segments.write(lease, [Segment(1, LARGE), Segment(7, b"")])
    assert store.segments.write(other, [Segment(1, b"other")])
    assert numbers(store, lease.bandit) == [1, 7]
    assert [store.segments.read(lease.bandit, n) for n in (1, 7, 2)] == [LARGE, b"", None]
    assert store.segments.write(lease, [Segment(7, b"again"), Segment(8, b"new")])
    assert store.segments.read(lease.bandit, 7) == b"again"
    assert store.segments.delete(lease, [1, 8, 99])
    assert (numbers(store, lease.bandit), numbers(store, other.bandit)) == ([7], [1])


def test_without_a_valid_lease_nothing_changes(store: Store) -> None:
    lease = new(store)
    assert store.segments.write(lease, [Segment(1, b"x")])
    stale = lease._replace(epoch=lease.epoch - 1)
    assert not store.segments.write(stale, [Segment(1, b"y"), Segment(2, b"y")])
    assert not store.segments.delete(stale, [1])
    assert (numbers(store, lease.bandit), store.segments.read(lease.bandit, 1)) == ([1], b"x")


def test_they_are_deleted_with_their_bandit_a_few_at_a_time(store: Store) -> None:
    other, lease = new(store, "other"), new(store)
    for one in (other, lease):
        store.append([Entry(one, 0, decisions(1, 2))])
        write_snapshot(store, one, 2, b"x")
        assert store.segments.write(one, [Segment(number, b"x") for number in range(1, 11)])
    store.delete_bandit(lease)
    left = []
    while store.delete_page(2):
        left.append(len(numbers(store, lease.bandit)))
    assert left == [10, 6, 2, 0, 0]
    assert len(numbers(store, other.bandit)) == 10


@pytest.fixture
def version_2(store: Store) -> Store:
    """Tables as 0.9.0 left them, with a snapshot and what had changed since."""
    lease = new(store)
    store.append([Entry(lease, 0, decisions(1, 3))])
    write_snapshot(store, lease, 2, b"whole")
    with store._writing() as connection:
        connection.execute(sa.text("DROP TABLE snapshot_segments"))
        connection.execute(sa.text("ALTER TABLE events DROP COLUMN place"))
        connection.execute(sa.text("UPDATE schema_version SET version = 2"))
        values = {"bandit": lease.bandit, "blob": b"changes"}
        insert = sa.text("INSERT INTO snapshot_changes VALUES (:bandit, 2, 3, :blob)")
        connection.execute(insert, values)
    return store


def test_tables_of_version_2_are_upgraded(version_2: Store, database: str) -> None:
    upgraded = Store(database)
    (row,) = upgraded.bandits()
    with upgraded._reading() as connection:
        version = connection.scalar(sa.text("SELECT version FROM schema_version"))
    assert version == SCHEMA_VERSION == 5
    assert upgraded.read_snapshot(row.id) == (2, b"whole")
    assert upgraded.read_changes(row.id, 2) == [(3, b"changes")]
    lease = upgraded.claim(row.id, "one", "http://one", 60)
    assert lease
    assert upgraded.segments.write(lease, [Segment(1, b"x")])
    for seq in (4, 5):  # the changes go with what they belong to
        assert write_snapshot(upgraded, lease, seq, b"new")
    assert upgraded.read_changes(row.id, 2) == []
    upgraded.close()


def test_a_database_of_version_2_can_be_read_as_it_is(version_2: Store, database: str) -> None:
    reader = Store(database, read_only=True)
    assert reader.events(reader.bandits()[0].id, 0) == decisions(1, 3)
    reader.close()
