"""Snapshots when a worker stops: of what has changed, few transactions, and only so long."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from driftbandits.agents.requests import Request
from driftbandits.service.engine import snapshot_writer
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.engine.snapshot_writer import SnapshotWriter
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    yield store
    store.close()


def bandits(store: Store, decisions: list[int]) -> list[LiveBandit]:
    """With so many decisions each."""
    found = []
    for number, count in enumerate(decisions):
        row = store.create_bandit(f"b{number}", CONFIG)
        live = revive(store, row, store.claim(row.id, "one", "http://one", 60.0)).live
        live.decide([[Request(id=f"d{i}") for i in range(count)]], 1.0, store.find)
        assert store.append([live.to_be_written()]) == set()
        found.append(live)
    return found


def snapshots(store: Store) -> list[int | None]:
    """The seq of the newest snapshot of each bandit."""
    kept = [store.read_snapshot(row.id) for row in store.bandits()]
    return [found and found[0] for found in kept]


def count_writes(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many snapshots each transaction had."""
    sizes: list[int] = []
    write = store.write_snapshots
    monkeypatch.setattr(store, "write_snapshots", lambda new: sizes.append(len(new)) or write(new))
    return sizes


def test_what_has_not_changed_is_not_written(store: Store, monkeypatch) -> None:
    live_bandits = bandits(store, [0, 3, 0, 1])
    sizes = count_writes(store, monkeypatch)
    writer = SnapshotWriter(store, Metrics(), None)
    writer.write_last(live_bandits)
    assert (snapshots(store), sizes) == ([None, 3, None, 1], [2])


def test_they_are_written_together(store: Store, monkeypatch) -> None:
    live_bandits = bandits(store, [1] * 7)
    monkeypatch.setattr(snapshot_writer, "TOGETHER", 3)
    sizes = count_writes(store, monkeypatch)
    SnapshotWriter(store, Metrics(), None).write_last(live_bandits)
    assert (snapshots(store), sizes) == ([1] * 7, [3, 3, 1])


def test_when_the_time_is_over_the_rest_stays_in_the_log(store: Store, monkeypatch, caplog) -> None:
    live_bandits = bandits(store, [1, 2, 9, 1, 4])
    monkeypatch.setattr(snapshot_writer, "TOGETHER", 2)
    sizes = count_writes(store, monkeypatch)
    clock = iter([0.0, 0.0, snapshot_writer.LAST_SECONDS + 1])
    monkeypatch.setattr(snapshot_writer, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    SnapshotWriter(store, Metrics(), None).write_last(live_bandits)
    assert (snapshots(store), sizes) == ([None, None, 9, None, 4], [2])
    assert "no time for 3 snapshots" in caplog.text
