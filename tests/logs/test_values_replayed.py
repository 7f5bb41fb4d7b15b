"""Typed contexts, features of arms and slates are replayed from the log, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandits import rebuild_agent
from driftbandits.agents.admission import DecisionBatch
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.requests import Request
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.store.store import Store

CONFIG = {
    "arms": {"a": {"topic": "sport", "age": 1.0}, "b": {"age": 4.0}, "c": {"topic": "arts"}},
    "context": {"n": "number", "country": "category(buckets=3)", "hour": "cyclic(period=24)"},
    "features": {"topic": "category(buckets=3)", "age": "number"},
    "seed": 1, "window": 40.0, "default_reward": 0.1, "reward_range": [0, 1], "noise": 0.5,
    "horizon": None,
}  # fmt: skip
COUNTRIES = ["AT", "DE", "FR", None]


@pytest.fixture(params=["d_lin_ts", "lin_ucb", "tracker"])
def live(request: Any, tmp_path: Path) -> Any:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    row = store.create_bandit("news", {**CONFIG, "policy": request.param})
    assert row
    lease = store.claim(row.id, "one", "http://one", 60.0)
    assert lease
    live, _ = revive(store, row, lease)
    for now in range(60):
        live_through(live, store, now)
    yield live
    store.close()


def live_through(live: LiveBandit, store: Store, now: int) -> None:
    """One second: perhaps a change of the arms, a decision or a slate, and some rewards."""
    rng = np.random.default_rng(now)
    live.expire(now)
    if now == 20:
        live.change_arm("arm_added", "d", now, {"topic": "sport", "age": 0.0})
    if now == 25:
        live.change_arm("features_set", "a", now, {"topic": "news", "age": 9.0})
    if now == 30:
        live.change_arm("arm_retired", "b", now)
    country = COUNTRIES[rng.integers(len(COUNTRIES))]
    context = {"n": rng.normal() * 50, "country": country, "hour": now % 24}
    own = {"a": {"age": 2.0}, "c": {"topic": "sport"}} if now % 7 == 3 else None
    k = 2 if now % 5 == 2 else None
    (made,) = live.decide([[Request(context, None, f"d{now}", own, k)]], now, store.find)
    assert isinstance(made, list)
    rewards = [(each.id, float(rng.random())) for each in made if rng.random() < 0.7]
    live.reward(rewards, now, store.find)
    assert store.append([live.to_be_written()]) == set()


def seen(book: Any) -> tuple[Any, ...]:
    return book.contexts.state(), book.features.vectors.state(), book.features.table.tolist()


def check_same(one: Any, other: Any) -> None:
    assert seen(one) == seen(other)
    for path, array in one.learner.state().items():
        np.testing.assert_array_equal(array, other.learner.state()[path])
    assert list(one.open) == list(other.open)


def test_the_log_alone_gives_the_same_learner(live: LiveBandit, tmp_path: Path) -> None:
    agent, _, mismatches = rebuild_agent(f"sqlite:///{tmp_path}/bandits.sqlite", "news")
    assert mismatches == 0
    check_same(live.book, agent._book)


def test_a_snapshot_goes_on_as_the_bandit_does(live: LiveBandit, tmp_path: Path) -> None:
    again = from_bytes(to_bytes(live.book))
    check_same(live.book, again)
    agent, *_ = rebuild_agent(f"sqlite:///{tmp_path}/bandits.sqlite", "news")
    copy = from_bytes(to_bytes(agent._book))
    for book in (agent._book, copy):
        batch = live_batch(book)
        book.decide(batch)
    check_same(agent._book, copy)


def live_batch(book: Any) -> Any:
    batch = DecisionBatch({}, {})
    requests = [Request({"n": 3.0, "country": "PL"}), Request({"hour": 5}, k=2)]
    book.admit(batch, ["x", "y"], requests)
    return batch.new


def test_slates_and_places_are_in_the_log(live: LiveBandit, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite", read_only=True)
    events = [event for event in store.events(live.row.id, 0) if event.kind == "decision"]
    store.close()
    slates: dict[str, list[Any]] = {}
    for event in events:
        if event.slate is not None:
            slates.setdefault(event.slate, []).append(event)
    assert list(slates) == [f"d{now}" for now in range(2, 60, 5)]
    for slate, (first, second) in slates.items():
        assert (first.id, second.id) == (f"{slate}.1", f"{slate}.2")
        assert (first.place, second.place) == (1, 2)
        assert first.arm != second.arm
