"""Tables of version 1, in which every bandit had a lease of its own, are upgraded."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from driftbandits import InputError
from driftbandits.service.store import store as store_module
from driftbandits.service.store.records import Entry
from driftbandits.service.store.store import Store
from driftbandits.service.store.versions import create_tables
from tests.service.store import databases
from tests.service.store.databases import decisions, new

postgres, database, store = databases.postgres, databases.database, databases.store

BACK_TO_VERSION_3 = ["ALTER TABLE events DROP COLUMN place"]
BACK_TO_VERSION_1 = [
    *BACK_TO_VERSION_3,
    "DROP TABLE workers",
    "ALTER TABLE bandits ADD COLUMN url TEXT",
    "ALTER TABLE bandits ADD COLUMN until DOUBLE PRECISION",
    "UPDATE schema_version SET version = 1",
]
ALIVE, GONE = "UPDATE bandits SET until = 9e9", "UPDATE bandits SET until = 1"


def run(store: Store, *statements: str) -> None:
    with store._writing() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


@pytest.fixture
def old(store: Store) -> Store:
    """With one bandit of the worker `one`, which made three decisions; its lease has expired."""
    store.append([Entry(new(store), 0, decisions(1, 3))])
    store.add_key("ab12", "admin", "first")
    run(store, *BACK_TO_VERSION_1, GONE)
    return store


def test_everything_is_kept(old: Store, database: str) -> None:
    upgraded = Store(database)
    (row,) = upgraded.bandits()
    assert row[4:] == (None, None, False)
    lease = upgraded.claim(row.id, "two", "http://two", 60)
    assert lease == (row.id, 2), "a worker that slept through it can no longer write"
    assert upgraded.append([Entry(lease._replace(epoch=1), 3, decisions(4, 4))]) == {row.id}
    assert upgraded.append([Entry(lease, 3, decisions(4, 4))]) == set()
    assert upgraded.events(row.id, 0) == decisions(1, 4)
    assert upgraded.key_role("ab12") == "admin"
    upgraded.close()
    again = Store(database)
    assert again.bandits()[0].owner == "two"
    again.close()


def test_a_database_of_version_3_is_read_as_it_is_and_upgraded(store: Store, database: str) -> None:
    lease = new(store)
    store.append([Entry(lease, 0, decisions(1, 3))])
    run(store, *BACK_TO_VERSION_3, "UPDATE schema_version SET version = 3")
    reader = Store(database, read_only=True)
    assert reader.events(lease.bandit, 0) == decisions(1, 3)
    assert [each.decision for page in reader.log(lease.bandit) for each in page] == decisions(1, 3)
    assert list(reader.find(lease.bandit, [decisions(1, 1)[0].id])) == [decisions(1, 1)[0].id]
    assert reader.corrections(lease.bandit) == {}
    reader.close()
    upgraded = Store(database)
    on_slate = decisions(4, 4)[0]._replace(place=2)
    again = upgraded.claim(lease.bandit, "one", "http://one", 60)
    assert again
    assert upgraded.append([Entry(again, 3, [on_slate])]) == set()
    assert upgraded.events(lease.bandit, 0) == [*decisions(1, 3), on_slate]
    upgraded.close()


POLICIES_OF_VERSION_4 = {  # and what they are since
    "tracker": "tracker(version=1)",
    "tracker(waves=4)": "tracker(version=1, waves=4)",
    "sw_ucb(window=50)": "sw_ucb(window=50)",
}


def test_trackers_of_version_4_stay_what_they_were(store: Store, database: str) -> None:
    """`tracker` has other defaults since."""
    for policy in POLICIES_OF_VERSION_4:
        assert store.create_bandit(policy, {"policy": policy})
    run(store, "UPDATE schema_version SET version = 4")
    reader = Store(database, read_only=True)
    upgraded = Store(database)
    for policy, today in POLICIES_OF_VERSION_4.items():
        assert reader.bandit(policy).config["policy"] == today
        assert upgraded.bandit(policy).config["policy"] == today
    assert upgraded.create_bandit("new", {"policy": "tracker"})
    for each in (reader, upgraded):
        each.close()
    again = Store(database)
    found = {row.name: row.config["policy"] for row in again.bandits()}
    assert found == {**POLICIES_OF_VERSION_4, "new": "tracker"}
    again.close()


def test_it_is_not_upgraded_under_a_worker_of_the_old_version(
    old: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(old, ALIVE)
    monkeypatch.setattr(store_module, "PATIENCE", 0.0)
    with pytest.raises(InputError, match=r"older driftbandits uses .* \(1 bandits\); stop all"):
        Store(database)
    run(old, "UPDATE bandits SET url = 'http://one'")  # as it was


def test_a_worker_of_the_old_version_that_was_killed_is_waited_for(
    old: Store, database: str
) -> None:
    run(old, ALIVE)
    threading.Timer(0.5, run, (old, GONE)).start()
    upgraded = Store(database)
    assert upgraded.orphans(5) == ["shop"]
    upgraded.close()


def test_an_upgrade_that_fails_changes_nothing(old: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(connection: sa.Connection) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("driftbandits.service.store.versions.metadata.create_all", fail)
    with pytest.raises(OSError, match="no space left"), old._writing() as connection:
        create_tables(connection)
    run(old, "UPDATE bandits SET until = 5, url = ''", "UPDATE schema_version SET version = 1")


def test_an_old_database_can_be_read_as_it_is(old: Store, database: str) -> None:
    reader = Store(database, read_only=True)
    assert reader.bandit("shop") == reader.bandits()[0]
    assert reader.events(reader.bandits()[0].id, 0) == decisions(1, 3)
    reader.close()
    run(old, "UPDATE bandits SET until = 5")  # it was not upgraded


def test_many_may_upgrade_at_once(old: Store, database: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: Store(database), range(4)))
    assert [each.orphans(5) for each in stores] == [["shop"]] * 4
    for each in stores:
        each.close()
