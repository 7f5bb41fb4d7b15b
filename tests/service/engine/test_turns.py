"""Bandits take turns: one that has much to do keeps nobody else waiting, and loses nothing."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.requests import Request
from driftbandits.service.engine import answering, pace, turns
from driftbandits.service.engine.commands import (
    ChangeArm,
    Decide,
    Delete,
    Inspect,
    MustGrow,
    Reward,
)
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.lease_keeper import Lost
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.store.records import Entry, Event
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG, all_of, codes, play

MANY = 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    for name in ("busy", "other"):
        store.create_bandit(name, CONFIG)
    yield store
    store.close()


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is one step, and a step one decision or reward."""
    monkeypatch.setattr(pace, "STEP", 0.0)
    monkeypatch.setattr(turns, "TURN", 0.0)


def many(engine: Engine, bandit: str = "busy") -> asyncio.Future:
    return engine.submit(bandit, Decide([Request(id=f"many-{at}") for at in range(MANY)]))


def one(engine: Engine, bandit: str, id: str) -> asyncio.Future:
    return engine.submit(bandit, Decide([Request(id=id)]))


async def revived(engine: Engine) -> None:
    for name in ("busy", "other"):
        await engine.submit(name, Inspect(lambda live: live.seq))


def log_of(store: Store, name: str) -> list[Event]:
    return store.events(store.bandit(name).id, 0)


def noted(order: list[str], answer: asyncio.Future, name: str) -> None:
    answer.add_done_callback(lambda _: order.append(name))


def watched_commits(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """Of each transaction: bandits and numbers of events."""
    commits: list[list[tuple[int, int]]] = []
    append = store.append

    def watch(entries: list[Entry]) -> set[int]:
        commits.append([(entry.lease.bandit, len(entry.events)) for entry in entries])
        return append(entries)

    monkeypatch.setattr(store, "append", watch)
    return commits


class Held:
    """The next decision is made when it is set free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, decide: Any = DecisionBook.decide) -> None:
        self._begun, self._free = threading.Event(), threading.Event()

        def wait_and_decide(book: DecisionBook, new: dict) -> Any:
            self._begun.set()
            assert self._free.wait(60)
            return decide(book, new)

        monkeypatch.setattr(DecisionBook, "decide", wait_and_decide)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, 60)

    def set_free(self) -> None:
        self._free.set()


@pytest.mark.usefixtures("in_steps")
def test_others_are_answered_between_the_steps_of_a_batch(store: Store, monkeypatch) -> None:
    async def story(engine: Engine) -> None:
        await revived(engine)
        commits, order = watched_commits(store, monkeypatch), []
        held = Held(monkeypatch)
        noted(order, many(engine), "batch")
        await held.begun()
        noted(order, behind := one(engine, "busy", "behind"), "behind")
        noted(order, one(engine, "other", "x"), "other")
        held.set_free()
        await behind
        assert order == ["other", "batch", "behind"]
        assert commits == [[(2, 1)], [(1, MANY)], [(1, 1)]], "a batch is one transaction"

    play(store, story)


def test_the_log_is_the_same_whatever_the_steps(store: Store, monkeypatch) -> None:
    async def story(engine: Engine, bandit: str) -> Any:
        made = await many(engine, bandit)
        pairs = [(each.id, float(at % 2)) for at, each in enumerate(made)]
        statuses = await engine.submit(bandit, Reward([*pairs, pairs[0], (pairs[1][0], 5.0)]))
        assert statuses[: MANY + 1] == ["learned"] * MANY + ["duplicate"]
        assert statuses[-1].code == "contradictory_reward"
        return made, await one(engine, bandit, "last")

    at_once = play(store, lambda engine: story(engine, "busy"))
    monkeypatch.setattr(pace, "STEP", 0.0)
    monkeypatch.setattr(turns, "TURN", 0.0)
    assert play(store, lambda engine: story(engine, "other")) == at_once
    first, second = (log_of(store, name) for name in ("busy", "other"))
    assert [e._replace(time=0.0) for e in first] == [e._replace(time=0.0) for e in second]


@pytest.mark.usefixtures("in_steps")
def test_a_batch_that_fails_half_way_is_not_made(store: Store, monkeypatch) -> None:
    decide, decided = DecisionBook.decide, []

    def fail_in_the_middle(book: DecisionBook, new: dict) -> Any:
        decided.extend(new)
        if len(decided) == MANY // 2:
            raise RuntimeError("diverged")
        return decide(book, new)

    async def story(engine: Engine) -> None:
        await revived(engine)
        held = Held(monkeypatch, fail_in_the_middle)
        failed = many(engine)
        await held.begun()
        behind = one(engine, "busy", "behind")
        held.set_free()
        assert codes(await all_of(failed, behind)) == ["broken_policy", "fine"]
        assert [event.id for event in log_of(store, "busy")] == ["behind"]

    play(store, story)


@pytest.mark.usefixtures("in_steps")
def test_a_bandit_that_is_lost_half_way_answers_nobody(store: Store, monkeypatch) -> None:
    expire_some, steps = LiveBandit.expire_some, []

    async def story(engine: Engine) -> None:
        await revived(engine)
        live = engine.live_bandits["busy"]

        def lose(self: LiveBandit, now: float, room: int = 0) -> bool:
            if self is live and room:  # it has begun
                steps.append(now)
                engine._inbox.put(Lost("busy", live.lease))
            return expire_some(self, now, room)

        monkeypatch.setattr(LiveBandit, "expire_some", lose)
        assert codes(await all_of(many(engine))) == ["moving"]
        assert steps
        assert log_of(store, "busy") == []

    play(store, story)


def expired(store: Store, name: str, count: int) -> None:
    """Decisions whose window has long passed."""
    row = store.create_bandit(name, {**CONFIG, "window": 1.0, "default_reward": 0.0})
    live = revive(store, row, store.claim(row.id, "before", "http://before", -1.0)).live
    live.decide([[Request(id=str(at)) for at in range(count)]], 1000.0, store.find)
    assert store.append([live.to_be_written()]) == set()


@pytest.mark.usefixtures("in_steps")
def test_others_are_answered_between_pages_of_expiry(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(answering, "PAGE", 10)
    expired(store, "old", MANY)

    async def story(engine: Engine) -> None:
        await revived(engine)
        commits, order = watched_commits(store, monkeypatch), []
        noted(order, old := one(engine, "old", "new"), "old")
        while "old" not in engine.live_bandits:
            await asyncio.sleep(0.001)
        noted(order, one(engine, "other", "x"), "other")
        await old
        assert order == ["other", "old"]
        own = [count for commit in commits for bandit, count in commit if bandit == 3]
        assert own == [10, 10, 10, 10, 1]
        kinds = [event.kind for event in log_of(store, "old")]
        assert kinds == ["decision"] * MANY + ["expiry"] * MANY + ["decision"]

    play(store, story)


@pytest.mark.usefixtures("in_steps")
def test_a_bandit_is_deleted_without_waiting_for_what_expires(store: Store) -> None:
    expired(store, "old", MANY)

    async def story(engine: Engine) -> None:
        assert codes(await all_of(engine.submit("old", Delete()))) == ["fine"]
        assert store.bandit("old") is None

    play(store, story)
    assert len(store.events(3, 0)) < 2 * MANY


@pytest.mark.usefixtures("in_steps")
def test_work_that_nobody_waits_for_does_not_keep_a_worker_from_stopping(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await revived(engine)
        live: Any = engine.live_bandits["busy"]
        live.expire_some = lambda *_, **__: True  # for ever
        many(engine).cancel()

    play(store, story)
    assert log_of(store, "busy") == []


def test_the_engine_compiles_nothing_for_an_arm(store: Store) -> None:
    async def story(engine: Engine) -> None:
        command = ChangeArm("arm_added", "c", lambda live: live.book.arms.slots)
        (asked,) = await all_of(engine.submit("busy", command))
        assert isinstance(asked, MustGrow)
        assert (len(asked.config["arms"]), asked.config["policy"]) == (4, "thompson")
        assert log_of(store, "busy") == []
        assert await engine.submit("busy", command._replace(prepared=4)) == 4

    play(store, story)


@pytest.mark.usefixtures("in_steps")
def test_a_bandit_with_open_decisions_grows(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await revived(engine)
        made = await many(engine)
        command = ChangeArm("arm_added", "c", lambda live: live.book.arms.slots, prepared=4)
        assert await engine.submit("busy", command) == 4
        rewards = [(each.id, 1.0) for each in made]
        assert set(await engine.submit("busy", Reward(rewards))) == {"learned"}

    play(store, story)
    row = store.bandit("busy")
    again = revive(store, row, store.claim(row.id, "first", "http://first", 60.0))
    assert (again.mismatches, again.live.book.arms.slots) == (0, 4)


def test_a_round_ends_with_its_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        def __init__(self, name: str, has_begun: bool = False) -> None:
            self.live = type("Live", (), {"row": type("Row", (), {"name": name})})
            self.name, self.has_begun, self.is_done = name, has_begun, False

    taking: Any = turns.Turns()
    for name in "abc":
        taking.add(Endless(name, has_begun=True))
    for name in "xy":
        taking.add(Endless(name))
    assert [work.name for work in taking.take()] == ["x", "y", "a", "b", "c"], "new ones first"
    monkeypatch.setattr(turns, "SLICE", 0.0)
    assert [[work.name for work in taking.take()] for _ in range(2)] == [["x", "a"], ["y", "b"]]
