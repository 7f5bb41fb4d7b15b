"""Snapshots hold what has changed; whatever is wrong with one, the bandit comes back right."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file import packed, unpacked
from driftbandits.agents.file_changes import Contents
from driftbandits.agents.requests import Request
from driftbandits.service.engine import snapshot_writer
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import newest_book, revive
from driftbandits.service.engine.snapshot_writer import SnapshotWriter
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Snapshot
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    yield store
    store.close()


class Played:
    """A bandit at work, and the snapshots that were written of it."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch, **config: Any) -> None:
        self.store, self.written = store, list[Snapshot]()
        row = store.create_bandit("shop", {**CONFIG, **config})
        self.live = revive(store, row, store.claim(row.id, "one", "http://one", 60.0)).live
        self.writer = SnapshotWriter(store, Metrics(), None)
        write = store.write_snapshots
        monkeypatch.setattr(
            store, "write_snapshots", lambda new: self.written.extend(new) or write(new)
        )

    def decide(self, count: int) -> None:
        first = self.live.book.counts.decisions
        requests = [Request(id=f"d{first + i}") for i in range(count)]
        self.live.decide([requests], 1.0, self.store.find)
        self.commit()

    def reward(self, *numbers: int) -> None:
        self.live.reward([(f"d{number}", 1.0) for number in numbers], 1.0, self.store.find)
        self.commit()

    def commit(self) -> None:
        assert self.store.append([self.live.to_be_written()]) == set()

    def snapshot(self) -> int:
        """The bytes that were written first."""
        count = len(self.written)
        self.writer._write_one(self.live, self.live.snapshot())
        return len(self.written[count].blob) if len(self.written) > count else 0

    def with_three_snapshots(self) -> "Played":
        """A whole one and two with changes, with some that were open before."""
        self.decide(300)
        self.snapshot()
        for round in (0, 1):
            self.decide(7)
            self.reward(3 + round, 50 + round, 301 + 7 * round)
            self.snapshot()
        self.decide(2)
        return self


def assert_same(one: DecisionBook, other: DecisionBook) -> None:
    assert (one.counts, one.now, one.arms.names) == (other.counts, other.now, other.arms.names)
    assert list(one.open.waiting) == list(other.open.waiting)
    ids = list(one.open.waiting)
    np.testing.assert_array_equal(one.open.tickets_of(ids), other.open.tickets_of(ids))
    for first, second in zip(one.open.waiting.values(), other.open.waiting.values(), strict=True):
        assert (first.arm, first.time) == (second.arm, second.time)
        np.testing.assert_array_equal(first.probabilities, second.probabilities)
    states = one.learner.state(), other.learner.state()
    assert all(states[0][path].tobytes() == states[1][path].tobytes() for path in states[0])


def revived(played: Played) -> LiveBandit:
    live, mismatches = revive(played.store, played.live.row, played.live.lease)
    assert mismatches == 0
    return live


@pytest.mark.parametrize("policy", ["thompson", "tracker"])
def test_a_bandit_comes_back_from_changes(store: Store, monkeypatch, policy: str) -> None:
    played = Played(store, monkeypatch, policy=policy).with_three_snapshots()
    assert [each.base for each in played.written] == [None, 300, 300]
    book, seq = newest_book(store, played.live.row)
    assert (seq, len(book.open.waiting)) == (320, 308)
    assert_same(revived(played).book, played.live.book)


def test_what_is_written_does_not_grow_with_what_is_open(store: Store, monkeypatch) -> None:
    sizes = {}
    for count in (1_000, 20_000):
        played = Played(store, monkeypatch)
        played.decide(count)
        whole = played.snapshot()
        for first in range(0, 300, 100):
            played.decide(100)
            played.reward(*range(first, first + 100))
            sizes[count] = played.snapshot()
        assert whole > 30 * count
        assert store.delete_bandit(played.live.lease)
    assert sizes[20_000] < 1.1 * sizes[1_000]


def test_changes_that_are_as_large_are_merged(store: Store, monkeypatch) -> None:
    played = Played(store, monkeypatch)
    played.decide(400)
    asked = []
    snapshot = played.live.snapshots.next
    monkeypatch.setattr(
        played.live.snapshots, "next", lambda *_: asked.append(snapshot(*_)) or asked[-1]
    )
    played.snapshot()
    for _ in range(12):
        played.decide(100)
        made = played.live.book.counts.decisions
        played.reward(*range(made - 50, made))
        played.snapshot()
    whole = [number for number, each in enumerate(played.written) if each.base is None]
    assert whole[0] == 0
    assert len(whole) > 1
    assert [each.base is None for each in asked] == [True] + [False] * 12, (
        "the engine copies changes"
    )
    for start, end in pairwise(whole):
        sizes = [len(each.blob) for each in played.written[start:end]]
        assert sum(sizes[1:-1]) <= sizes[0] < sum(sizes[1:])
    assert_same(newest_book(store, played.live.row)[0], played.live.book)
    with store._reading() as connection:
        kept = connection.scalar(sa.text("SELECT count(DISTINCT base) FROM snapshot_changes"))
    assert kept <= 2, "older changes are deleted with what they belong to"


def test_a_revived_bandit_goes_on_with_changes(store: Store, monkeypatch) -> None:
    played = Played(store, monkeypatch).with_three_snapshots()
    played.live = revived(played)
    assert (played.live.snapshot_seq, played.live.seq) == (320, 322)
    played.decide(1)
    played.reward(9, 314)
    played.snapshot()
    assert played.written[-1].base == 300
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


def test_after_more_arms_the_next_one_is_whole(store: Store, monkeypatch) -> None:
    played = Played(store, monkeypatch)
    played.decide(50)
    played.snapshot()
    played.live.change_arm("arm_added", "c", 1.0)
    played.commit()
    played.decide(5)
    played.snapshot()
    assert [each.base for each in played.written] == [None, None]
    assert_same(revived(played).book, played.live.book)


def test_after_one_that_was_not_written_the_next_one_is_whole(store: Store, monkeypatch) -> None:
    played = Played(store, monkeypatch)
    played.decide(50)
    played.snapshot()
    write = store.write_snapshots

    def fail(new: list[Snapshot]) -> set[int]:
        raise sa.exc.OperationalError("", {}, Exception("the disk is full"))

    monkeypatch.setattr(store, "write_snapshots", fail)
    played.decide(1)
    played.snapshot()
    monkeypatch.setattr(store, "write_snapshots", write)
    played.decide(1)
    played.snapshot()
    assert [each.base for each in played.written] == [None, None]
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


def blob_of(blob: bytes, **about: object) -> bytes:
    """With a right checksum."""
    _, contents = unpacked(blob, "it")
    return packed(Contents({**contents.about, **about}, contents.arrays))


PLACES = {
    "the last changes": "UPDATE snapshot_changes SET blob = :blob WHERE seq = 320",
    "the first changes": "UPDATE snapshot_changes SET blob = :blob WHERE seq = 310",
    "the whole one": "UPDATE snapshots SET blob = :blob",
}
WRONG = {
    "damaged": lambda blob: blob[:-9] + b"x" + blob[-8:],
    "cut off": lambda blob: blob[:90],
    "counts": lambda blob: blob_of(blob, rewards=-1),
    "settings": lambda blob: blob_of(blob, seed=99),
    "open": lambda blob: blob_of(blob, open=[["d3", 0, 2, 0.0]]),
    "closed": lambda blob: blob_of(blob, closed=7),
    "arms": lambda blob: blob_of(blob, arms=["x", "y"]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", WRONG)
def test_what_is_wrong_is_not_used(store: Store, monkeypatch, place: str, how: str) -> None:
    played = Played(store, monkeypatch).with_three_snapshots()
    number = list(PLACES).index(place)
    wrong = WRONG[how](played.written[2 - number].blob)
    with store._writing() as connection:
        connection.execute(sa.text(PLACES[place]), {"blob": wrong})
    assert_same(revived(played).book, played.live.book)


def test_a_snapshot_that_is_ahead_of_the_log_is_not_used(store: Store, monkeypatch, caplog) -> None:
    played = Played(store, monkeypatch).with_three_snapshots()
    with store._writing() as connection:
        connection.execute(sa.text("UPDATE snapshot_changes SET seq = 9999 WHERE seq = 320"))
    assert_same(revived(played).book, played.live.book)
    assert "it does not fit the log" in caplog.text


def test_one_that_does_not_fit_the_events_after_it_is_not_used(
    store: Store, monkeypatch, caplog
) -> None:
    """It says that a decision is rewarded that has its reward later."""
    played = Played(store, monkeypatch).with_three_snapshots()
    played.reward(200)
    wrong = blob_of(played.written[2].blob, closed=["d4", "d51", "d200"], decisions=313)
    with store._writing() as connection:
        connection.execute(sa.text(PLACES["the last changes"]), {"blob": wrong})
    assert_same(revived(played).book, played.live.book)
    assert "does not fit its log" in caplog.text


def test_a_large_state_is_written_less_often(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(snapshot_writer, "SNAPSHOT_EVERY", 10)
    for policy, due in {"thompson": [False, True], "recurrent(hidden=64)": [False, False]}.items():
        played = Played(store, monkeypatch, policy=policy)
        found = []
        for count in (5, 5):
            played.decide(count)
            found.append(played.writer.is_due(played.live))
        assert found == due, policy
        assert store.delete_bandit(played.live.lease)
