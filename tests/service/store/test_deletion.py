"""Deleting a bandit: its name is free at once, its log goes page by page."""

from driftbandits.service.store.records import Entry
from driftbandits.service.store.store import Store
from tests.service.store import databases
from tests.service.store.databases import GONE, decisions, new, write_snapshot

postgres, database, store = databases.postgres, databases.database, databases.store


def test_the_name_is_free_at_once_and_nobody_finds_the_rest(store: Store) -> None:
    lease = new(store, ttl=GONE)
    store.append([Entry(lease, 0, decisions(1, 3))])
    assert [store.delete_bandit(lease) for _ in range(2)] == [True, False]
    assert (store.bandits(), store.bandit("shop"), store.orphans(9)) == ([], None, [])
    assert store.claim(lease.bandit, "two", "http://two", 60) is None
    assert store.append([Entry(lease, 3, decisions(4, 4))]) == {lease.bandit}
    assert not write_snapshot(store, lease, 3, b"x")
    again = new(store)
    assert again.bandit > lease.bandit, "an old lease never fits a new bandit"
    assert store.events(again.bandit, 0) == []


def test_the_log_goes_in_pages_and_the_row_last(store: Store) -> None:
    other, lease = new(store, "other"), new(store)
    for one in (lease, other):
        store.append([Entry(one, 0, decisions(1, 5))])
        write_snapshot(store, one, 5, b"x")
    store.delete_bandit(lease)
    left = []
    while store.delete_page(2):
        left.append(len(store.events(lease.bandit, 0)))
    assert left == [3, 1, 0, 0]
    assert store.read_snapshot(lease.bandit) is None
    assert [row.name for row in store.bandits()] == ["other"]
    assert len(store.events(other.bandit, 0)) == 5
    assert store.read_snapshot(other.bandit) == (5, b"x")
