"""What the store promises, in SQLite and in PostgreSQL."""

import time

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from driftbandits import InputError
from driftbandits.service.store import event_log
from driftbandits.service.store.records import Entry, Event, Snapshot
from driftbandits.service.store.schema import events
from driftbandits.service.store.store import Store
from tests.service.store import databases
from tests.service.store.databases import (
    CHANGES,
    ODD,
    decision,
    decisions,
    new,
    reward,
    write_snapshot,
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
    assert write_snapshot(store, other, 1, b"other")
    blobs = {seq: bytes([seq]) * 300_000 for seq in (3, 5, 9)}
    for seq, blob in blobs.items():
        assert write_snapshot(store, lease, seq, blob)
    assert write_snapshot(store, lease, 9, b"again")
    kept = [store.read_snapshot(lease.bandit, newest) for newest in range(3)]
    assert kept == [(9, b"again"), (5, blobs[5]), None]
    assert store.read_snapshot(other.bandit) == (1, b"other")


def test_snapshots_of_many_bandits_are_one_transaction(store: Store, monkeypatch) -> None:
    first, lost, last = (new(store, name) for name in "abc")
    begun, begin = [], store._writing
    monkeypatch.setattr(store, "_writing", lambda: begun.append(1) or begin())
    stale = lost._replace(epoch=lost.epoch - 1)
    given = [Snapshot(lease, 1, b"x") for lease in (last, stale, first)]
    assert store.write_snapshots(given) == {lost.bandit}
    kept = [store.read_snapshot(lease.bandit) for lease in (first, lost, last)]
    assert (kept, begun) == ([(1, b"x"), None, (1, b"x")], [1])


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


def test_corrections_are_found_without_reading_the_log(store: Store) -> None:
    lease = new(store)
    correction = Event(4, "correction", 1.0, "x", reward=0.5)
    store.append([Entry(lease, 0, [*decisions(1, 3), correction])])
    assert list(store.corrections(lease.bandit).values()) == [correction]
    if store._engine.dialect.name == "sqlite":
        query = store._reader.corrections_query.format(hint=event_log.HINTS["sqlite"])
        with store._reading() as connection:
            plan = connection.execute(sa.text(f"EXPLAIN QUERY PLAN {query}"), {"bandit": 1}).all()
        assert "USING INDEX corrections" in plan[0][-1]


def test_a_slow_reader_is_not_cut_off(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, between a page of rows and the end of reading, seconds may pass."""
    lease = new(store)
    store.append([Entry(lease, 0, [decision(1, "a")])])
    page = event_log.Reader.page

    def slowly(*arguments: object) -> list[Event]:
        found = page(*arguments)
        time.sleep(2.5)  # PostgreSQL ends transactions that are idle for 2 seconds
        return found

    monkeypatch.setattr(event_log.Reader, "page", slowly)
    assert [event.id for event in store.events(lease.bandit, 0)] == ["a"]
