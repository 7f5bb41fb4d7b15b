"""A reward that was learned and is corrected later: as if it had been right from the start."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandits.agents.requests import Request
from driftbandits.logs.rebuild import rebuild_agent
from driftbandits.logs.replay import new_book, replay
from driftbandits.service.engine.commands import Correct, Decide, Inspect, Reward
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.errors import ApiError
from driftbandits.service.store.records import Event
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG, play

PATIENT = CONFIG | {"policy": "tracker", "arms": ["a", "b", "c"], "out_of_range": "refuse"}


@pytest.fixture
def store(tmp_path: Path):
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", PATIENT)
    yield store
    store.close()


async def pairs(engine: Engine, first: int, last: int) -> None:
    """Decisions with the numbers as ids; every third one is rewarded."""
    for number in range(first, last):
        await engine.submit("shop", Decide([Request(id=str(number))]))
        await engine.submit("shop", Reward([(str(number), float(number % 3 == 0))]))


async def look(engine: Engine) -> dict[str, Any]:
    """What the bandit has learned, and what it has counted."""

    def read(live: LiveBandit) -> dict[str, Any]:
        arrays = live.book.learner.state().items()
        return {
            "state": {path: array.tolist() for path, array in arrays},
            "counts": live.book.counts,
        }

    return await engine.submit("shop", Inspect(read))


def log_of(store: Store) -> list[Event]:
    row = store.bandit("shop")
    assert row
    return store.events(row.id, 0)


def as_if_right(events: list[Event], id: str, reward: float) -> dict[str, list]:
    """The learner of the same log with another reward in it, and no correction."""
    book = new_book(PATIENT, remember=0)
    events = [event for event in events if event.kind != "correction"]
    replay(
        book,
        [e._replace(reward=reward) if (e.kind, e.id) == ("reward", id) else e for e in events],
    )
    return {path: array.tolist() for path, array in book.learner.state().items()}


def test_the_learner_is_rebuilt_as_if_the_reward_had_been_right(store: Store) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 30)
        before = await look(engine)
        made = await engine.submit("shop", Correct("5", 1.0))
        after = await look(engine)
        await pairs(engine, 30, 40)
        return before, made, after, log_of(store), await look(engine)

    before, made, after, events, at_last = play(store, story)
    assert (made.before, made.reward) == (0.0, 1.0)
    assert before["state"] != after["state"]
    assert after["counts"] == before["counts"]
    assert at_last["state"] == as_if_right(events, "5", 1.0)
    (correction,) = [event for event in events if event.kind == "correction"]
    assert (correction.id, correction.reward) == ("5", 1.0)
    logged = [event.reward for event in events if (event.kind, event.id) == ("reward", "5")]
    assert logged == [0.0]  # a log is never rewritten


def test_it_stays_corrected_after_a_restart_also_from_a_snapshot(store: Store, monkeypatch) -> None:
    monkeypatch.setattr("driftbandits.service.engine.snapshot_writer.SNAPSHOT_EVERY", 10)

    async def correct(engine: Engine) -> Any:
        await pairs(engine, 0, 20)  # with snapshots that hold the wrong reward
        await engine.submit("shop", Correct("5", 1.0))
        return (await look(engine))["state"]

    async def see(engine: Engine) -> Any:
        return (await look(engine))["state"]

    corrected = play(store, correct)
    assert corrected == play(store, see)
    row = store.bandit("shop")
    assert row
    lease = store.claim(row.id, "second", "http://second", 600.0)
    assert lease
    revived = revive(store, row, lease)
    assert revived.mismatches == 0
    found = revived.live.book.learner.state()
    assert {path: array.tolist() for path, array in found.items()} == corrected


def test_the_last_of_several_corrections_counts(store: Store) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 10)
        await engine.submit("shop", Correct("5", 1.0))
        second = await engine.submit("shop", Correct("5", 0.25))
        return second, (await look(engine))["state"], log_of(store)

    second, state, events = play(store, story)
    assert (second.before, second.reward) == (1.0, 0.25)
    assert state == as_if_right(events, "5", 0.25)


def test_a_correction_that_is_sent_again_is_logged_once(store: Store) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 3)
        made = [await engine.submit("shop", Correct("1", 1.0)) for _ in range(3)]
        return made, log_of(store)

    made, events = play(store, story)
    assert [each.before for each in made] == [0.0, 1.0, 1.0]
    assert len([event for event in events if event.kind == "correction"]) == 1


def test_a_reward_that_is_taken_back_was_never_learned(store: Store) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 10)
        made = await engine.submit("shop", Correct("5", None))
        (again,) = await engine.submit("shop", Reward([("5", 0.0)]))
        return made, again, (await look(engine))["state"], log_of(store)

    made, again, state, events = play(store, story)
    assert (made.before, made.reward) == (0.0, None)
    assert isinstance(again, ApiError)
    assert again.message == "the reward of decision '5' was taken back, got 0.0"
    book = new_book(PATIENT, remember=0)
    kept = [e for e in events if (e.kind, e.id) != ("reward", "5") and e.kind != "correction"]
    replay(book, kept)
    found = book.learner.state()
    assert state == {path: array.tolist() for path, array in found.items()}


def test_an_agent_from_the_log_has_the_corrections_of_its_time(store: Store, tmp_path) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 10)
        await engine.submit("shop", Correct("5", 1.0))
        return (await look(engine))["state"]

    state, events = play(store, story), log_of(store)
    database = f"sqlite:///{tmp_path}/bandits.sqlite"

    def rebuilt(until: float | None) -> dict[str, list]:
        agent = rebuild_agent(database, "shop", until).agent
        return {path: array.tolist() for path, array in agent._book.learner.state().items()}

    assert rebuilt(None) == state
    before = np.nextafter(events[-1].time, 0.0)
    assert rebuilt(before) == as_if_right(events, "5", 0.0)


@pytest.mark.parametrize(
    ("id", "reward", "code"),
    [("open", 1.0, "open_decision"), ("none", 1.0, "unknown_decision"), ("0", 7.0, "bad_value")],
)
def test_what_cannot_be_corrected(store: Store, id: str, reward: float, code: str) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 2)
        await engine.submit("shop", Decide([Request(id="open")]))
        with pytest.raises(ApiError) as refusal:
            await engine.submit("shop", Correct(id, reward))
        return refusal.value.code

    assert play(store, story) == code
    assert not [event for event in log_of(store) if event.kind == "correction"]


def test_those_who_come_behind_it_are_answered_by_the_rebuilt_learner(store: Store) -> None:
    async def story(engine: Engine) -> Any:
        await pairs(engine, 0, 10)
        correcting = engine.submit("shop", Correct("5", 1.0))
        behind = engine.submit("shop", Decide([Request(id="behind")]))
        await correcting
        (made,) = await behind
        return made, log_of(store)

    made, events = play(store, story)
    assert [event.kind for event in events][-2:] == ["correction", "decision"]
    book = new_book(PATIENT, remember=0)
    kept = [e for e in events if e.kind != "correction"]
    right = [e._replace(reward=1.0) if (e.kind, e.id) == ("reward", "5") else e for e in kept]
    replay(book, right[:-1])
    assert replay(book, right[-1:]) == 0
    assert PATIENT["arms"][book.open["behind"].arm] == made.arm
