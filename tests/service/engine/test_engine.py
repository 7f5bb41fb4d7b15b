"""The engine and its bandits, at the moments at which something could be lost or said twice."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from driftbandits.agents.requests import Request
from driftbandits.logs.replay import new_book, replay
from driftbandits.service.engine.commands import ChangeArm, Decide, Delete, Inspect, Reward
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.engine.worker import Worker
from driftbandits.service.errors import ApiError
from driftbandits.service.http.handlers import Handlers, all_described
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import Entry, Lease
from driftbandits.service.store.store import Store

CONFIG = {
    "arms": ["a", "b"], "context": [], "policy": "thompson", "seed": 1, "window": None,
    "default_reward": None, "reward_range": [0, 1], "noise": 0.5, "horizon": None,
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path):
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", CONFIG)
    yield store
    store.close()


def play(store: Store, story: Callable[[Engine], Awaitable[Any]]) -> Any:
    """A story with an engine of its own, which is stopped in the end."""

    async def run() -> Any:
        engine = Engine(store, Worker("first", "http://first", 600.0), Metrics())
        engine.start()
        try:
            return await story(engine)
        finally:
            await asyncio.to_thread(engine.stop)

    return asyncio.run(run())


def decide(engine: Engine, *ids: str) -> asyncio.Future:
    return engine.submit("shop", Decide([Request(id=id) for id in ids]))


def all_of(*answers: asyncio.Future) -> asyncio.Future:
    return asyncio.gather(*answers, return_exceptions=True)


def taken_over(store: Store) -> LiveBandit:
    """By another worker, while the first was asleep."""
    with store._writing() as connection:
        connection.execute(sa.text("UPDATE workers SET until = 0"))
    row = store.bandit("shop")
    return revive(store, row, store.claim(row.id, "second", "http://second", 600.0)).live


def codes(replies: list) -> list:
    return [reply.code if isinstance(reply, ApiError) else "fine" for reply in replies]


def test_a_decision_before_a_delete_is_in_the_log_or_not_acknowledged(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await decide(engine, "one")
        taken_over(store)
        replies = await all_of(decide(engine, "two"), engine.submit("shop", Delete()))
        assert codes(replies) == ["moving", "moving"]
        assert not store.find(store.bandit("shop").id, ["two"])

    play(store, story)


def test_nobody_is_answered_for_a_bandit_that_is_deleted(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await decide(engine, "one")
        delete = Delete()
        asked = engine.submit("shop", delete), decide(engine, "two"), engine.submit("shop", delete)
        assert codes(await all_of(*asked)) == ["fine", "unknown_bandit", "unknown_bandit"]
        assert store.bandit("shop") is None

    play(store, story)


def test_a_worker_that_lost_its_lease_gives_no_final_answer(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await decide(engine, "one")
        other = taken_over(store)
        other.decide([[Request(id="two")]], time.time(), store.find)
        assert store.append([Entry(other.lease, other.seq, other.events)]) == set()
        (status,) = await engine.submit("shop", Reward([("two", 1.0)]))
        assert status.code == "moving"
        assert "shop" not in engine.live_bandits

    play(store, story)


def test_an_error_in_a_round_is_answered_and_the_next_round_goes_on(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await decide(engine, "one")
        count = engine.metrics.count
        engine.metrics.count = lambda _: 1 / 0
        assert codes(await all_of(decide(engine, "two"))) == ["not_committed"]
        engine.metrics.count = count
        again, new = await decide(engine, "two", "three")
        logged = store.find(store.bandit("shop").id, ["two", "three"])
        assert [CONFIG["arms"][logged[d.id][0].arm] for d in (again, new)] == [again.arm, new.arm]

    play(store, story)


def test_one_bad_caller_does_not_stop_the_others_of_its_group(store: Store) -> None:
    async def story(engine: Engine) -> None:
        bad = engine.submit("shop", Decide([Request(available=["nobody"], id="bad")]))
        lone = engine.submit("shop", ChangeArm("arm_added", "a", lambda _: None))
        replies = await all_of(decide(engine, "x", "x"), bad, lone, decide(engine, "x"))
        assert codes(replies) == ["fine", "bad_value", "existing_name", "fine"]
        first, again = replies[0]
        assert first == again == replies[3][0]
        assert await engine.submit("shop", Inspect(lambda live: live.book.counts.decisions)) == 1

    play(store, story)


async def until(condition: Callable[[], Any]) -> None:
    """Waits for another thread."""
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it has not happened")


def writes_in_background(
    engine: Engine, store: Store, monkeypatch: pytest.MonkeyPatch
) -> threading.Event:
    """From now on groups are written on their own thread, and only while this is set."""
    write, append, free = engine._committer.write, store.append, threading.Event()

    def wait_and_append(entries: list) -> set:
        assert free.wait(60)
        return append(entries)

    monkeypatch.setattr(
        engine._committer, "write", lambda group, **_: write(group, in_background=True)
    )
    monkeypatch.setattr(store, "append", wait_and_append)
    return free


def test_what_is_being_written_is_known_already(store: Store, monkeypatch) -> None:
    async def story(engine: Engine) -> None:
        (made,) = await decide(engine, "x")
        free = writes_in_background(engine, store, monkeypatch)
        first = engine.submit("shop", Reward([("x", 1.0)]))
        await asyncio.sleep(0.1)
        again = engine.submit("shop", Reward([("x", 1.0), ("x", 0.0)]))
        later = decide(engine, "y", "x")
        await asyncio.sleep(0.1)
        assert not first.done()
        free.set()
        assert await first == ["learned"]
        duplicate, contradiction = await again
        assert (duplicate, contradiction.code) == ("duplicate", "contradictory_reward")
        assert (await later)[1] == made
        assert await engine.submit("shop", Inspect(lambda live: live.monitor.rewards)) == 1

    play(store, story)


def test_nobody_is_answered_on_top_of_what_could_not_be_written(store: Store, monkeypatch) -> None:
    async def story(engine: Engine) -> None:
        await decide(engine, "x")
        free = writes_in_background(engine, store, monkeypatch)
        append, calls = store.append, []

        def fail_at_first(entries: list) -> set:
            calls.append(entries)
            if len(calls) == 1:
                free.wait(60)
                raise sa.exc.OperationalError("", {}, Exception("the disk is full"))
            return append(entries)

        monkeypatch.setattr(store, "append", fail_at_first)
        book = engine.live_bandits["shop"].book
        lost = decide(engine, "one")
        await until(lambda: calls)
        on_top = engine.submit("shop", Decide([Request()])), decide(engine, "one")
        await until(lambda: book.counts.decisions == 3)
        free.set()
        assert codes(await all_of(lost, *on_top)) == ["no_database", "moving", "moving"]
        assert [event.id for event in store.events(store.bandit("shop").id, 0)] == ["x"]
        await decide(engine, "one")
        found = await engine.submit(
            "shop", Inspect(lambda live: (live.seq, live.book.counts.decisions))
        )
        assert found == (2, 2)

    play(store, story)


def test_what_was_noted_in_the_same_group_is_known(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await decide(engine, "x")
        inspect, reward = Inspect(lambda live: live.seq), Reward([("x", 1.0)])
        decide_y, reward_y = Decide([Request(id="y")]), Reward([("y", 0.0)])
        commands = [reward, inspect, reward, decide_y, inspect, reward_y, inspect]
        replies = await all_of(
            *[engine.submit("shop", command) for command in commands], decide(engine, "y")
        )
        assert [replies[at] for at in (0, 2, 5)] == [["learned"], ["duplicate"], ["learned"]]
        assert replies[3] == replies[-1]
        kinds = [event.kind for event in store.events(store.bandit("shop").id, 0)]
        assert kinds == ["decision", "reward", "decision", "reward"]

    play(store, story)


def test_a_reward_that_comes_with_the_end_of_its_window_is_too_late(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/short.sqlite")
    store.create_bandit("shop", {**CONFIG, "window": 0.001})

    async def story(engine: Engine) -> None:
        for id in "abc":
            await decide(engine, id)
            await asyncio.sleep(0.01)
            (refused,) = await engine.submit("shop", Reward([(id, 1.0)]))
            assert refused.code == "expired_decision"

    play(store, story)
    store.close()


def test_a_bandit_that_nobody_asks_for_is_adopted(store: Store) -> None:
    async def story() -> list[str]:
        engine = Engine(store, Worker("first", "http://first", 0.3), Metrics())
        engine.start()
        while not engine.live_bandits:
            await asyncio.sleep(0.02)
        adopted = list(engine.live_bandits)
        await asyncio.to_thread(engine.stop)
        return adopted

    assert asyncio.run(asyncio.wait_for(story(), 60)) == ["shop"]


def test_a_list_revives_nobody(store: Store) -> None:
    engine = Engine(store, Worker("first", "http://first", 600.0), Metrics())  # does not run
    described = Handlers(store, engine, None)._described(None, store.bandit("shop"))
    found = asyncio.run(asyncio.wait_for(described, 60))
    (shown,) = all_described([found])
    assert (shown.name, shown.decisions) == ("shop", None)


def live(config: dict, **changes: Any) -> LiveBandit:
    return LiveBandit(None, Lease(1, 1), new_book({**config, **changes}, remember=0), 0)


def nothing(*_: object) -> dict:
    """An empty log."""
    return {}


def test_an_id_that_is_asked_again_when_there_is_no_more_room() -> None:
    bandit = live(CONFIG, max_open=2)
    bandit.row = type("Row", (), {"id": 1, "name": "shop"})
    (first,), _ = bandit.decide([[Request(id="a")], [Request(id="b")]], 0.0, nothing)
    again, _ = bandit.decide([[Request(id="a")], [Request(id="c")]], 1.0, nothing)
    assert again == [first]
    assert [event.kind for event in bandit.events] == ["decision", "decision", "expiry", "decision"]


def test_a_clock_that_goes_back_is_rebuilt_as_it_was() -> None:
    served, rebuilt = live(CONFIG, window=100.0), live(CONFIG, window=100.0)
    served.row = type("Row", (), {"id": 1, "name": "shop"})
    for now, id in [(1000.0, "a"), (400.0, "b"), (1090.0, "c")]:
        served.expire(now)
        served.decide([[Request(id=id)]], served.book.now, nothing)
    replay(rebuilt.book, served.events)
    times = [[kept.time for kept in x.book.open.values()] for x in (served, rebuilt)]
    assert times[0] == times[1] == [1000.0, 1000.0, 1090.0]


def test_what_was_answered_stands_where_a_replay_decides_otherwise() -> None:
    served, rebuilt = live(CONFIG), live(CONFIG)
    served.row = rebuilt.row = type("Row", (), {"id": 1, "name": "shop"})
    served.decide([[Request(id="a")]], 0.0, nothing)
    (event,) = served.events
    assert replay(rebuilt.book, [event._replace(arm=1 - event.arm)]) == 1
    ((again,),) = rebuilt.decide([[Request(id="a")]], 1.0, nothing)
    assert again.arm == CONFIG["arms"][1 - event.arm]


def test_a_negative_zero_is_learned_as_it_is_replayed() -> None:
    from driftbandits import Agent

    agents = [Agent(["a", "b"], policy="sw_ucb") for _ in range(2)]
    for agent, zero in zip(agents, (0.0, -0.0), strict=True):
        agent.decide(id="x", now=0)
        agent.reward("x", zero, now=0)
    states = [agent._book.learner.state() for agent in agents]
    assert all(np.array_equal(a.tobytes(), states[1][p].tobytes()) for p, a in states[0].items())


def test_large_batches_get_their_programs_in_the_background(store: Store) -> None:
    store.create_bandit("news", CONFIG | {"policy": "tracker(version=1)"})

    async def story(engine: Engine) -> None:
        def batch(name: str) -> Decide:
            return Decide([Request(id=f"{name} {n}") for n in range(60)])

        await engine.submit("news", batch("first"))
        learner = engine.live_bandits["news"].book.learner
        assert learner.lacks_programs
        for _ in range(600):
            if not learner.lacks_programs:
                break
            await asyncio.sleep(0.1)
        assert not learner.lacks_programs
        await engine.submit("news", batch("second"))
        assert learner._buffers_for_many is not None

    play(store, story)
