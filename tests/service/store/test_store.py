"""What the store promises, in SQLite and in PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy.exc import IntegrityError

from driftbandits import InputError
from driftbandits.service.store import event_log
from driftbandits.service.store.records import Entry, Event, Lease
from driftbandits.service.store.schema import events
from driftbandits.service.store.store import Store
from tests.service.store import databases
from tests.service.store.databases import (
    CHANGES,
    GONE,
    ODD,
    decision,
    decisions,
    new,
    reward,
)

postgres, database, store = databases.postgres, databases.database, databases.store


@pytest.mark.parametrize("name", ODD)
def test_a_bandit_is_kept_as_it_is(store: Store, name: str) -> None:
    config = {"arms": ODD, "window": None, "range": [0, 0.1], "a": {"b": True}}
    made = store.create_bandit(name, config)
    assert [made] == store.bandits() == [store.bandit(name)]
    assert made[1:3] + made[4:] == (name, config, None, None, False)
    assert store.create_bandit(name, {}) is None, "the name is taken"
    assert store.bandit(name + "x") is None


def test_events_come_back_bit_for_bit(store: Store) -> None:
    lease = new(store)
    written = [decision(seq, id) for seq, id in enumerate(ODD, 1)]
    floats = [0.1, -1e300, 5e-324, 1 / 3, float("inf"), 0.0]
    written += [reward(7 + at, id, floats[at]) for at, id in enumerate(ODD)]
    written += [
        *(Event(13 + at, f"arm_{how}", 0.5, "blue") for at, how in enumerate(CHANGES)),
        decision(16, "late"),
        Event(17, "expiry", 2.5, "late"),
        decision(18, "blue")._replace(
            probabilities=b"", context=b"", available=bytes(range(256)), arm=0
        ),
        Event(19, "expiry", 1e9, "blue", reward=-2.0),
    ]
    assert store.append([Entry(lease, 0, written)]) == set()
    back = store.events(lease.bandit, 0)
    assert back == written
    assert [list(map(type, event)) for event in back] == [
        list(map(type, event)) for event in written
    ]
    assert store.events(lease.bandit, 3, limit=2) == written[3:5]


def test_only_the_last_owner_writes(store: Store) -> None:
    first = new(store, ttl=GONE)
    store.append([Entry(first, 0, decisions(1, 2))])
    second = store.claim(first.bandit, "two", "http://two", 60)
    assert second == Lease(first.bandit, first.epoch + 1)
    assert store.append([Entry(first, 2, decisions(3, 3))]) == {first.bandit}
    assert not store.write_snapshot(first, 2, b"")
    assert not store.delete_bandit(first)
    assert store.append([Entry(second, 2, decisions(3, 4))]) == set()
    assert store.events(first.bandit, 0) == decisions(1, 4)


def test_a_lease_that_lives_cannot_be_taken(store: Store) -> None:
    lease = new(store)
    assert store.claim(lease.bandit, "two", "http://two", 60) is None
    assert store.bandits()[0][4:] == ("one", "http://one", True)
    assert store.claim(lease.bandit + 1, "two", "http://two", 60) is None, "there is no such bandit"


def test_claiming_ones_own_changes_nothing_while_it_lives(store: Store) -> None:
    lease = new(store)
    assert store.claim(lease.bandit, "one", "http://new", GONE) == lease
    assert store.bandits()[0][4:] == ("one", "http://new", False)
    assert store.claim(lease.bandit, "one", "http://one", 60) == Lease(lease.bandit, 2)


def test_renewing_tells_what_is_left(store: Store) -> None:
    kept, lost, other = new(store, "a", ttl=GONE), new(store, "b", ttl=GONE), new(store, "c", "two")
    assert store.claim(lost.bandit, "two", "http://two", GONE)
    assert store.renew("one", 60) == {kept.bandit: "a"}
    assert [row.alive for row in store.bandits()] == [True, False, True]
    assert store.append([Entry(kept, 0, decisions(1, 1))]) == set(), "its epoch is the same"
    assert store.renew("two", 60) == {lost.bandit: "b", other.bandit: "c"}
    assert store.renew("nobody", 60) == {}


def test_orphans_are_those_that_nobody_looks_after(store: Store) -> None:
    new(store, "gone", ttl=GONE)
    new(store, "kept")
    store.create_bandit("never had", {})
    assert store.orphans(10) == ["gone", "never had"]
    assert store.orphans(1) == ["gone"]


def test_released_bandits_are_free_at_once(store: Store) -> None:
    mine, other = new(store, "a"), new(store, "b", "two")
    store.release("one")
    assert [row.owner for row in store.bandits()] == [None, "two"]
    assert store.claim(mine.bandit, "two", "http://two", 60) == Lease(mine.bandit, 2)
    assert store.claim(other.bandit, "one", "http://one", 60) is None


def test_one_of_many_claims_wins(store: Store) -> None:
    bandit = new(store, ttl=GONE).bandit
    with ThreadPoolExecutor(8) as threads:
        claims = threads.map(lambda worker: store.claim(bandit, worker, "", 60), "abcdefgh")
    assert [lease for lease in claims if lease] == [Lease(bandit, 2)]


def test_a_lost_bandit_does_not_stop_the_others(store: Store) -> None:
    first, lost, behind, last = (new(store, name) for name in "abcd")
    stale = lost._replace(epoch=lost.epoch - 1)
    entries = [
        Entry(last, 0, decisions(1, 3)),
        Entry(stale, 0, decisions(1, 2)),
        Entry(first, 0, decisions(1, 1)),
        Entry(behind, 5, decisions(6, 6)),
        Entry(first, 1, decisions(2, 2)),
    ]
    assert store.append(entries) == {lost.bandit, behind.bandit}
    written = [len(store.events(lease.bandit, 0)) for lease in (first, lost, behind, last)]
    assert written == [2, 0, 0, 3]


OUTCOMES = [
    [reward(3, "id-1")],
    [Event(3, "expiry", 1.0, "id-1")],
    [decision(3), reward(4, "id-3"), reward(5, "id-3")],
]
TWICE = [[decision(3, "id-1")], [decision(3), decision(4, "id-3")]]


@pytest.mark.parametrize("again", TWICE + OUTCOMES)
def test_nothing_happens_twice(store: Store, again: list[Event]) -> None:
    """Not even what came with it is written, and the log goes on after."""
    lease, other = new(store), new(store, "other")
    written = [decision(1), reward(2, "id-1")]
    store.append([Entry(lease, 0, written)])
    with pytest.raises(IntegrityError):
        store.append([Entry(other, 0, decisions(1, 2)), Entry(lease, 2, again)])
    assert (store.events(lease.bandit, 0), store.events(other.bandit, 0)) == (written, [])
    both = [Entry(other, 0, [decision(1)]), Entry(lease, 2, [decision(3)])]
    assert store.append(both) == set(), "the same ids in another bandit are others"
    fields = dict(zip(event_log.COLUMNS, again[-1], strict=True))
    columns = {"bandit": other.bandit, **fields, "seq": 100}
    by_hand = events.insert().values([columns, {**columns, "seq": 101}])
    with pytest.raises(IntegrityError), store._writing() as connection:  # the rule is the table's
        connection.execute(by_hand)


@pytest.mark.parametrize("seqs", [[2], [1, 3], [2, 1], [1, 1]])
def test_a_log_has_no_gaps(store: Store, seqs: list[int]) -> None:
    lease = new(store)
    with pytest.raises(ValueError, match="numbered from 1"):
        store.append([Entry(lease, 0, [decision(seq, f"at {at}") for at, seq in enumerate(seqs)])])
    assert store.events(lease.bandit, 0) == []


def test_a_decision_is_found_with_its_outcome(store: Store) -> None:
    lease, many = new(store), decisions(1, 2500)
    outcome, expiry = reward(2501, "id-1"), Event(2502, "expiry", 1.0, "id-2500")
    store.append([Entry(lease, 0, [*many, outcome, expiry, Event(2503, "arm_added", 1.0, "blue")])])
    found = store.find(lease.bandit, [*(event.id for event in many), "blue", "unknown"])
    assert len(found) == 2500
    some = [found[f"id-{seq}"] for seq in (1, 7, 2500)]
    assert some == [(many[0], outcome), (many[6], None), (many[-1], expiry)]
    assert store.find(lease.bandit, []) == store.find(lease.bandit + 1, ["id-1"]) == {}


def test_pages_hold_the_whole_log(store: Store) -> None:
    lease, other = new(store), new(store, "other")
    store.append([Entry(other, 0, [decision(1), reward(2, "id-1")])])
    firsts = range(1, 30, 3)
    threes = [(decision(at), decision(at + 1), reward(at + 2, f"id-{at + 1}")) for at in firsts]
    written = [event for three in threes for event in three]
    store.append(
        [Entry(lease, 0, written), Entry(lease, 30, [Event(31, "arm_added", 1.0, "id-1")])]
    )
    expected = [pair for alone, *both in threes for pair in ((alone, None), tuple(both))]
    for chunk in (1, 7, 10, 20, 100):
        pages = list(store.log(lease.bandit, chunk))
        assert {len(page) for page in pages[:-1]} <= {chunk}
        assert [one for page in pages for one in page] == expected
    newest = [store.last_decisions(lease.bandit, count) for count in (3, 100)]
    assert newest == [expected[-3:], expected]
    assert list(store.log(new(store, "empty").bandit)) == []


def test_the_newest_two_snapshots_are_kept(store: Store) -> None:
    lease, other = new(store), new(store, "other")
    assert store.read_snapshot(lease.bandit) is None
    assert store.write_snapshot(other, 1, b"other")
    blobs = {seq: bytes([seq]) * 300_000 for seq in (3, 5, 9)}
    for seq, blob in blobs.items():
        assert store.write_snapshot(lease, seq, blob)
    assert store.write_snapshot(lease, 9, b"again")
    kept = [store.read_snapshot(lease.bandit, newest) for newest in range(3)]
    assert kept == [(9, b"again"), (5, blobs[5]), None]
    assert store.read_snapshot(other.bandit) == (1, b"other")


def test_keys_open_until_they_are_revoked(store: Store) -> None:
    for digest, role in {"ab12": "admin", "ab34": "read", "%": "decide"}.items():
        store.add_key(digest, role, ODD[4])
    rows = store.keys()
    assert {row[:3] for row in rows} == {
        ("ab12", "admin", ODD[4]),
        ("ab34", "read", ODD[4]),
        ("%", "decide", ODD[4]),
    }
    assert (store.key_role("ab34"), store.key_role("ab")) == ("read", None)
    with pytest.raises(IntegrityError):
        store.add_key("ab12", "read", "")
    for several in ("ab", ""):
        with pytest.raises(
            InputError, match="digest must be the start of exactly one key's digest"
        ):
            store.revoke_key(several)
    assert not store.revoke_key("AB3")
    assert store.revoke_key("%")
    assert store.revoke_key("ab3")
    (left,) = store.keys()
    assert left[:2] == ("ab12", "admin")
    assert store.key_role("ab34") is None


def test_threads_share_a_store(store: Store) -> None:
    """They append to several bandits in any order, while the leases of all are renewed."""

    def write(thread: int) -> None:
        own = [new(store, f"{thread}-{at}") for at in range(3)]
        for seq in range(1, 16):
            mixed = np.random.default_rng([thread, seq]).permutation(3)
            assert store.append([Entry(own[at], seq - 1, [decision(seq)]) for at in mixed]) == set()
            assert store.renew("one", 60).keys() >= {lease.bandit for lease in own}

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert [store.events(row.id, 0) for row in store.bandits()] == [decisions(1, 15)] * 12
