"""Open decisions in segments; whatever is wrong with a snapshot, the bandit comes back right."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from driftbandits.agents import open_decisions
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.file_bytes import packed, unpacked
from driftbandits.agents.file_changes import Contents
from driftbandits.agents.requests import Request
from driftbandits.service.engine import snapshot_plan, snapshot_writer
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import newest_book, revive
from driftbandits.service.engine.snapshot_writer import SnapshotWriter
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Segment
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG

ROWS = 32  # of a segment


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    yield store
    store.close()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many segments, most of them in a file."""
    monkeypatch.setattr(open_decisions, "MOST_ROWS", ROWS)
    monkeypatch.setattr(open_decisions, "MEMORY_BYTES", 2_000)
    monkeypatch.setattr(snapshot_writer, "SEGMENT_BYTES_TOGETHER", 5_000)


class Played:
    """A bandit at work."""

    def __init__(self, store: Store, name: str = "shop", **config: Any) -> None:
        self.store, self.now = store, 1.0
        row = store.create_bandit(name, {**CONFIG, **config})
        self.live = revive(store, row, store.claim(row.id, "one", "http://one", 60.0)).live
        self.writer = SnapshotWriter(store, Metrics(), None)

    def decide(self, count: int) -> None:
        first = self.live.book.counts.decisions
        requests = [Request(id=f"d{first + i}") for i in range(count)]
        self.live.decide([requests], self.now, self.store.find)
        self.commit()

    def reward(self, *numbers: int) -> None:
        rewards = [(f"d{number}", float(number % 2)) for number in numbers]
        statuses = self.live.reward(rewards, self.now, self.store.find)
        assert set(statuses) == {"learned"}
        self.commit()

    def add_arm(self, name: str) -> None:
        self.live.change_arm("arm_added", name, self.now)
        self.commit()

    def commit(self) -> None:
        assert self.store.append([self.live.to_be_written()]) == set()

    def snapshot(self) -> None:
        self.writer._write_one(self.live, self.live.snapshot())

    def with_three_snapshots(self) -> "Played":
        """In which some are closed that were open before."""
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
    ids = list(one.open)
    assert ids == list(other.open)
    np.testing.assert_array_equal(one.open.tickets_of(ids), other.open.tickets_of(ids))
    for first, second in zip(one.open.values(), other.open.values(), strict=True):
        assert (first.arm, first.time) == (second.arm, second.time)
        assert first.probabilities.tobytes() == second.probabilities.tobytes()
    states = one.learner.state(), other.learner.state()
    assert all(states[0][path].tobytes() == states[1][path].tobytes() for path in states[0])


def revived(played: Played) -> LiveBandit:
    live, mismatches = revive(played.store, played.live.row, played.live.lease)
    assert mismatches == 0
    return live


def segments(played: Played) -> list[int]:
    return sorted(played.store.segments.numbers(played.live.row.id))


@pytest.mark.parametrize("policy", ["thompson", "tracker"])
def test_a_bandit_comes_back_from_segments(store: Store, policy: str) -> None:
    played = Played(store, policy=policy).with_three_snapshots()
    assert segments(played) == list(range(1, 10)), "314 decisions, 32 in each but the newest"
    book, seq = newest_book(store, played.live.row)
    assert (seq, len(book.open)) == (320, 308)
    assert_same(revived(played).book, played.live.book)


def test_what_is_written_does_not_grow_with_what_is_open(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(open_decisions, "MOST_ROWS", 256)
    sizes = {}
    for count in (1_000, 10_000):
        played = Played(store)
        played.decide(count)
        played.snapshot()
        before = set(segments(played))
        played.decide(300)
        played.reward(*range(300))
        played.snapshot()
        _, head = store.read_snapshot(played.live.row.id)
        new = [store.segments.read(played.live.row.id, n) for n in set(segments(played)) - before]
        assert 0 < len(new) < 4
        sizes[count] = len(head) + sum(map(len, new))
        assert store.delete_bandit(played.live.lease)
    bits = (10_000 - 1_000) / 8 + 40 * 10  # and the numbers of the segments
    assert sizes[10_000] - sizes[1_000] < bits + 256 * 60  # the newest ones may be more, or fewer


def test_no_value_is_larger_than_a_block(store: Store) -> None:
    played = Played(store)
    for _ in range(5):
        played.decide(200)
        played.reward(*range(played.live.book.counts.rewards, played.live.book.counts.rewards + 50))
        played.snapshot()
    blobs = [store.segments.read(played.live.row.id, number) for number in segments(played)]
    assert len(blobs) > 20
    assert max(map(len, blobs)) < 4_000


def test_segments_that_nobody_needs_are_deleted(store: Store) -> None:
    played = Played(store)
    played.decide(20 * ROWS)
    played.snapshot()
    assert len(segments(played)) == 19
    for part in range(4):
        played.reward(*range(part, 20 * ROWS, 5))
        played.snapshot()
    played.decide(1)
    played.snapshot()
    kept = {block.segment for block in played.live.book.open.blocks}
    assert set(segments(played)) == kept
    assert len(kept) < 8, "blocks are joined when they are mostly closed"
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


def test_the_snapshot_before_can_still_be_used(store: Store) -> None:
    played = Played(store)
    played.decide(10 * ROWS)
    played.snapshot()
    played.reward(*range(0, 10 * ROWS, 3))
    played.snapshot()
    played.reward(*range(1, 10 * ROWS, 3))
    played.snapshot()
    with store._writing() as connection:
        connection.execute(sa.text("DELETE FROM snapshots WHERE seq = 534"))
    book, seq = newest_book(store, played.live.row)
    assert (seq, len(book.open)) == (427, 213)
    assert_same(revived(played).book, played.live.book)


def test_a_revived_bandit_goes_on(store: Store) -> None:
    played = Played(store).with_three_snapshots()
    before = segments(played)
    played.live = revived(played)
    assert (played.live.snapshot_seq, played.live.seq) == (320, 322)
    played.decide(1)
    played.reward(9, 314)
    played.snapshot()
    assert segments(played) == before, "what is written once is not written again"
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


def test_what_a_killed_worker_has_left_is_replaced_or_deleted(store: Store) -> None:
    played = Played(store).with_three_snapshots()
    assert store.segments.write(played.live.lease, [Segment(n, b"torn") for n in (10, 11, 99)])
    played.live = revived(played)
    played.decide(5 * ROWS)
    played.snapshot()
    assert segments(played) == [*range(1, 10), *range(100, 105)]
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


@pytest.mark.parametrize("policy", ["thompson", "tracker", "exp3"])
def test_segments_from_before_more_arms(store: Store, policy: str) -> None:
    played = Played(store, policy=policy)
    for name in ("c", "d", "e"):  # two slots, then four, then eight
        played.decide(3 * ROWS)
        played.snapshot()
        played.add_arm(name)
    played.decide(ROWS)
    played.reward(0, 100, 200, 300)
    numbers = segments(played)
    played.snapshot()
    assert set(numbers) <= set(segments(played)), "nothing is written again"
    assert_same(revived(played).book, played.live.book)
    played.live = revived(played)
    played.reward(*range(1, 90))
    played.snapshot()
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


FAILING = {
    "the first segments": ("segments.write", 0),
    "a later segment": ("segments.write", 2),
    "reading them back": ("segments.read", 1),
    "the snapshot": ("write_snapshots", 0),
}


@pytest.mark.parametrize("what", FAILING)
def test_what_was_not_written_comes_with_the_next_one(store: Store, monkeypatch, what: str) -> None:
    played = Played(store)
    played.decide(5 * ROWS)
    played.snapshot()
    name, calls = FAILING[what]
    target = store.segments if name.startswith("segments") else store
    name = name.split(".")[-1]
    works, count = getattr(target, name), iter(range(100))

    def fail(*given: Any) -> Any:
        if next(count) >= calls:
            raise sa.exc.OperationalError("", {}, Exception("the disk is full"))
        return works(*given)

    monkeypatch.setattr(target, name, fail)
    played.decide(9 * ROWS)
    played.reward(1, 2, 3)
    played.snapshot()
    monkeypatch.setattr(target, name, works)
    assert newest_book(store, played.live.row)[1] == 5 * ROWS, "the one before is untouched"
    assert_same(revived(played).book, played.live.book)
    played.decide(1)
    played.reward(4)
    played.snapshot()
    assert_same(newest_book(store, played.live.row)[0], played.live.book)
    assert len(segments(played)) == 14


def test_oldest_newest_and_expired_after_a_restart(store: Store) -> None:
    played = Played(store, max_open=10 * ROWS, window=100.0)
    played.decide(10 * ROWS)
    played.now = 50.0
    played.decide(3 * ROWS)  # the oldest ones make room
    played.snapshot()
    played.live = revived(played)
    assert next(iter(played.live.book.open)) == f"d{3 * ROWS}"
    played.reward(3 * ROWS, 13 * ROWS - 1)
    played.now = 101.0
    played.live.expire(played.now)
    expired = [event.id for event in played.live.events]
    assert expired == [f"d{number}" for number in range(3 * ROWS + 1, 10 * ROWS)]
    played.commit()
    played.snapshot()
    assert_same(revived(played).book, played.live.book)


def test_decisions_go_on_while_a_snapshot_is_written(store: Store) -> None:
    """The engine's thread closes, joins and spills; the snapshot is that of its moment."""
    played = Played(store)
    played.decide(12 * ROWS)
    taken = played.live.snapshot()
    played.reward(*range(0, 12 * ROWS, 2))
    played.reward(*range(1, 6 * ROWS, 2))
    played.writer._write_one(played.live, taken)
    book, seq = newest_book(store, played.live.row)
    assert (seq, len(book.open)) == (12 * ROWS, 12 * ROWS)
    assert_same(revived(played).book, played.live.book)
    played.snapshot()
    assert_same(newest_book(store, played.live.row)[0], played.live.book)


def test_many_new_segments_are_written_a_few_at_a_time(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(snapshot_plan, "MOST_NEW", 4)
    played = Played(store)
    played.decide(12 * ROWS)
    found = []
    for number in range(3):
        played.snapshot()
        found.append((len(segments(played)), played.live.snapshot_seq))
        played.reward(number, 100 + number)  # others go on between
    assert found == [(4, 0), (8, 0), (11, 12 * ROWS + 4)]
    assert_same(revived(played).book, played.live.book)
    last = Played(store, name="last")
    last.decide(12 * ROWS)
    last.writer.write_last([last.live])
    assert_same(newest_book(store, last.live.row)[0], last.live.book)


def test_when_the_time_is_over_segments_wait_for_the_next_start(
    store: Store, monkeypatch, caplog
) -> None:
    played = Played(store)
    played.decide(5 * ROWS)
    clock = iter([0.0, 0.0, 0.0, snapshot_writer.LAST_SECONDS + 1])
    monkeypatch.setattr(snapshot_writer, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    played.writer.write_last([played.live])
    assert "no time for a snapshot of 'shop'" in caplog.text
    assert 0 < len(segments(played)) < 4
    assert_same(revived(played).book, played.live.book)


def blob_of(blob: bytes, **about: object) -> bytes:
    """With a right checksum."""
    _, contents = unpacked(blob, "it")
    return packed(Contents({**contents.about, **about}, contents.arrays))


def arrays_of(blob: bytes, **arrays: Any) -> bytes:
    _, contents = unpacked(blob, "it")
    changed = {key: change(contents.arrays[key].copy()) for key, change in arrays.items()}
    return packed(Contents(contents.about, contents.arrays | changed))


HEADS = {
    "damaged": lambda blob: blob[:-9] + b"x" + blob[-8:],
    "cut off": lambda blob: blob[:90],
    "counts": lambda blob: blob_of(blob, rewards=-1),
    "settings": lambda blob: blob_of(blob, seed=99),
    "open": lambda blob: blob_of(blob, open=[["d3", 0, 2, 0.0]]),
    "segments": lambda blob: blob_of(blob, segments=[[1, 32]]),
    "no such segment": lambda blob: blob_of(blob, segments=[[77, 32]]),
    "nonsense": lambda blob: blob_of(blob, segments=7),
    "bits": lambda blob: arrays_of(blob, is_open=lambda bits: bits[:5]),
    "arms": lambda blob: blob_of(blob, arms=["x", "y"]),
}


@pytest.mark.parametrize("how", HEADS)
def test_a_wrong_snapshot_is_not_used(store: Store, how: str) -> None:
    played = Played(store).with_three_snapshots()
    _, blob = store.read_snapshot(played.live.row.id)
    with store._writing() as connection:
        changed = {"blob": HEADS[how](blob)}
        connection.execute(sa.text("UPDATE snapshots SET blob = :blob WHERE seq = 320"), changed)
    assert_same(revived(played).book, played.live.book)


SEGMENTS = {
    "damaged": lambda blob: blob[:-9] + b"x" + blob[-8:],
    "ids": lambda blob: blob_of(blob, ids=[7] * ROWS),
    "one id": lambda blob: blob_of(blob, ids=["x"] * ROWS),
    "no ids": lambda blob: blob_of(blob, ids=[]),
    "slots": lambda blob: blob_of(blob, slots=3),
    "arms": lambda blob: arrays_of(blob, arms=lambda arms: arms + 2),
    "times": lambda blob: arrays_of(blob, times=lambda times: times * np.nan),
    "future": lambda blob: arrays_of(blob, times=lambda times: times + 1e6),
    "laws": lambda blob: arrays_of(blob, laws=lambda laws: laws + 99),
    "probabilities": lambda blob: arrays_of(blob, probabilities=lambda table: table - 1),
    "types": lambda blob: arrays_of(blob, arms=lambda arms: arms.astype(np.int64)),
    "tickets": lambda blob: arrays_of(blob, tickets=lambda tickets: tickets[:5]),
}


@pytest.mark.parametrize("how", SEGMENTS)
def test_with_a_wrong_segment_no_snapshot_is_used(store: Store, how: str, caplog) -> None:
    played = Played(store).with_three_snapshots()
    wrong = SEGMENTS[how](store.segments.read(played.live.row.id, 2))
    assert store.segments.write(played.live.lease, [Segment(2, wrong)])
    live = revived(played)
    assert live.snapshot_seq == 0
    assert "is not used" in caplog.text
    assert_same(live.book, played.live.book)
    played.live = live
    played.snapshot()
    assert_same(newest_book(store, live.row)[0], live.book)


def test_a_snapshot_that_is_ahead_of_the_log_is_not_used(store: Store, caplog) -> None:
    played = Played(store).with_three_snapshots()
    with store._writing() as connection:
        connection.execute(sa.text("UPDATE snapshots SET seq = 9999 WHERE seq = 320"))
    assert_same(revived(played).book, played.live.book)
    assert "it does not fit the log" in caplog.text


def test_one_that_does_not_fit_the_events_after_it_is_not_used(store: Store, caplog) -> None:
    """It says that a decision is rewarded that has its reward later."""
    played = Played(store).with_three_snapshots()
    played.reward(200)
    _, blob = store.read_snapshot(played.live.row.id)

    def close(bits: np.ndarray) -> np.ndarray:
        bits[200 // 8] ^= 0x80
        return bits

    wrong = blob_of(arrays_of(blob, is_open=close), decisions=313)
    with store._writing() as connection:
        connection.execute(sa.text("UPDATE snapshots SET blob = :blob"), {"blob": wrong})
    assert_same(revived(played).book, played.live.book)
    assert "does not fit its log" in caplog.text


def test_a_large_state_is_written_less_often(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(snapshot_writer, "SNAPSHOT_EVERY", 10)
    for policy, due in {"thompson": [False, True], "recurrent(hidden=64)": [False, False]}.items():
        played = Played(store, policy=policy)
        found = []
        for count in (5, 5):
            played.decide(count)
            found.append(played.writer.is_due(played.live))
        assert found == due, policy
        assert store.delete_bandit(played.live.lease)
