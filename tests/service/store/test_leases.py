"""One lease per worker, and epochs: in SQLite and in PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

from driftbandits.service.store import leases
from driftbandits.service.store.records import Entry, Lease, Snapshot
from driftbandits.service.store.schema import workers
from driftbandits.service.store.store import Store
from tests.service.store import databases
from tests.service.store.databases import GONE, decision, decisions, new, new_database

postgres, database, store = databases.postgres, databases.database, databases.store


def claim(store: Store, bandit: int, worker: str, ttl: float = 60.0) -> Lease | None:
    return store.claim(bandit, worker, f"http://{worker}", ttl)


def test_only_the_last_owner_writes(store: Store) -> None:
    first = new(store, ttl=GONE)
    store.append([Entry(first, 0, decisions(1, 2))])
    second = claim(store, first.bandit, "two")
    assert second == Lease(first.bandit, first.epoch + 1)
    assert store.append([Entry(first, 2, decisions(3, 3))]) == {first.bandit}
    assert store.write_snapshots([Snapshot(first, 2, b"")]) == {first.bandit}
    assert not store.delete_bandit(first)
    assert store.append([Entry(second, 2, decisions(3, 4))]) == set()
    assert store.events(first.bandit, 0) == decisions(1, 4)


@pytest.mark.parametrize("ttl", [60.0, inf])
def test_a_bandit_whose_owner_lives_cannot_be_taken(store: Store, ttl: float) -> None:
    lease = new(store, ttl=ttl)
    assert claim(store, lease.bandit, "two") is None
    assert store.bandits()[0][4:] == ("one", "http://one", True)
    assert claim(store, lease.bandit + 1, "two") is None, "there is no such bandit"


def test_claiming_ones_own_changes_nothing_while_the_lease_lives(store: Store) -> None:
    lease = new(store)
    assert claim(store, lease.bandit, "one") == lease
    store.renew("one", "http://new", GONE)
    assert store.bandits()[0][4:] == ("one", "http://new", False)
    assert claim(store, lease.bandit, "one") == lease, "nobody took it meanwhile"
    store.release("one")
    assert claim(store, lease.bandit, "two") == Lease(lease.bandit, 2)


def test_one_lease_is_that_of_all_bandits_of_a_worker(store: Store) -> None:
    kept, lost, other = new(store, "a"), new(store, "b"), new(store, "c", "two")
    store.renew("one", "http://one", GONE)
    assert [row.alive for row in store.bandits()] == [False, False, True]
    assert claim(store, lost.bandit, "two")
    store.renew("one", "http://one", 60)
    assert [row.alive for row in store.bandits()] == [True, True, True]
    assert store.owned("one") == {kept.bandit: "a"}
    assert store.owned("two") == {lost.bandit: "b", other.bandit: "c"}
    assert store.fingerprint("two") == (2, lost.bandit + other.bandit)
    assert (store.owned("nobody"), store.fingerprint("nobody")) == ({}, (0, 0))
    assert store.append([Entry(kept, 0, decisions(1, 1))]) == set(), "its epoch is the same"
    assert store.append([Entry(lost, 0, decisions(1, 1))]) == {lost.bandit}


def test_renewing_writes_one_row_whatever_the_number_of_bandits(store: Store) -> None:
    for number in range(30):
        new(store, f"b{number}")
    changed: list[tuple[str, int]] = []

    def note(connection, cursor, statement, *_: object) -> None:
        changed.append((statement.split()[0], cursor.rowcount))

    sa.event.listen(store._engine, "after_cursor_execute", note)
    store.renew("one", "http://one", 60)
    written = [rows for verb, rows in changed if verb in ("INSERT", "UPDATE", "DELETE")]
    assert written == [1]


def test_orphans_are_those_that_nobody_looks_after(store: Store) -> None:
    new(store, "gone", "dead", ttl=GONE)
    new(store, "kept")
    store.create_bandit("never had", {})
    new(store, "released", "three")
    store.release("three")
    assert store.orphans(10) == ["gone", "never had", "released"]
    assert store.orphans(1) == ["gone"]


def test_released_bandits_are_free_at_once(store: Store) -> None:
    mine, other = new(store, "a"), new(store, "b", "two")
    store.release("one")
    assert [row.owner for row in store.bandits()] == [None, "two"]
    assert claim(store, mine.bandit, "two") == Lease(mine.bandit, 2)
    assert claim(store, other.bandit, "one") is None


def test_one_of_many_claims_wins(store: Store) -> None:
    bandit = new(store, ttl=GONE).bandit
    with ThreadPoolExecutor(8) as threads:
        claims = threads.map(lambda worker: claim(store, bandit, worker), "abcdefgh")
    assert [lease for lease in claims if lease] == [Lease(bandit, 2)]


def test_workers_that_died_long_ago_are_forgotten(store: Store) -> None:
    for worker, ttl in {"old": -7200.0, "young": GONE, "alive": 60.0, "alone": inf}.items():
        store.renew(worker, "", ttl)
    store.forget_dead_workers()
    with store._reading() as connection:
        assert {*connection.scalars(sa.select(workers.c.name))} == {"young", "alive", "alone"}


def test_threads_share_a_store(store: Store) -> None:
    """They append to several bandits in any order, while the lease of all is renewed."""

    def write(thread: int) -> None:
        own = [new(store, f"{thread}-{at}") for at in range(3)]
        for seq in range(1, 16):
            mixed = np.random.default_rng([thread, seq]).permutation(3)
            assert store.append([Entry(own[at], seq - 1, [decision(seq)]) for at in mixed]) == set()
            store.renew("one", "http://one", 60)
            assert store.owned("one").keys() >= {lease.bandit for lease in own}

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert [store.events(row.id, 0) for row in store.bandits()] == [decisions(1, 15)] * 12


def test_a_dead_owner_in_the_middle_of_copying_holds_no_bandit(postgres: Any) -> None:
    """No timeout of PostgreSQL reaches it there."""
    url = new_database(postgres)
    store, frozen = Store(url), psycopg.connect(url)
    lease = new(store)
    frozen.execute("SELECT id FROM bandits WHERE id = %s FOR UPDATE", [lease.bandit])
    copying = frozen.cursor().copy("COPY events FROM STDIN")
    copying.__enter__()
    wait_until_old(store)
    end(store, lease.bandit)
    assert holders(store) == 1, "its owner lives"
    store.renew("one", "http://one", GONE)
    assert claim(store, lease.bandit, "two") == Lease(lease.bandit, lease.epoch + 1)
    assert holders(store) == 0
    with pytest.raises(psycopg.OperationalError):
        copying.__exit__(None, None, None)
    frozen.close()
    store.close()


def wait_until_old(store: Store) -> None:
    with store._reading() as connection:
        connection.execute(sa.text("SELECT pg_sleep(:seconds)"), {"seconds": leases.TOO_OLD + 0.1})


def end(store: Store, bandit: int) -> None:
    with store._writing() as connection:
        leases.end_transaction_of_dead_owner(connection, bandit)


def holders(store: Store) -> int:
    """Sessions that are copying."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY events%'"
    with store._reading() as connection:
        return connection.scalar(sa.text(f"{query} AND datname = current_database()"))
