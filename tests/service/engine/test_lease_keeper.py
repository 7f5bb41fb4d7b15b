"""Idle workers renew one lease, or none where they are alone, and write nothing else."""

import asyncio
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
import sqlalchemy as sa

from driftbandits.agents.requests import Request
from driftbandits.service.engine.commands import Decide
from driftbandits.service.engine.engine import TICK, Engine
from driftbandits.service.engine.lease_keeper import Lost
from driftbandits.service.engine.worker import Worker
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG

NAMES = [f"b{number}" for number in range(12)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    for name in NAMES:
        store.create_bandit(name, {**CONFIG, "window": 1000.0})
    yield store
    store.close()


class Statements(list[str]):
    """What is written to a store from now on."""

    def __init__(self, store: Store) -> None:
        sa.event.listen(store._engine, "after_cursor_execute", self.note)

    def note(self, *given: object) -> None:
        verb = str(given[2]).split()[0]
        if verb not in ("SELECT", "PRAGMA", "BEGIN"):
            self.append(verb)


def with_all(store: Store, ttl: float, story) -> None:
    """An engine with all bandits, each with an open decision."""

    async def run() -> None:
        engine = Engine(store, Worker("first", "http://first", ttl), Metrics())
        engine.start()
        try:
            await asyncio.gather(*(engine.submit(name, Decide([Request()])) for name in NAMES))
            await story(engine)
        finally:
            await asyncio.to_thread(engine.stop)

    asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize(("ttl", "written"), [(inf, []), (600.0, ["INSERT"] * 3)])
def test_an_idle_worker_writes_its_lease_or_nothing(
    store: Store, ttl: float, written: list[str]
) -> None:
    async def story(engine: Engine) -> None:
        statements, now = Statements(store), time.time()
        for tick in range(3):
            engine._background.leases.look_after(engine.live_bandits)
            assert engine._by_bandit([], now + 2 * TICK * tick + 1) == {}, "nobody is looked at"
        assert statements == written

    with_all(store, ttl, story)


def test_a_bandit_is_looked_at_when_a_window_has_passed(store: Store) -> None:
    async def story(engine: Engine) -> None:
        live = engine.live_bandits["b3"]
        first = live.book.open.first_time
        engine._ticked = 0.0
        await asyncio.sleep(0.01)
        assert not live.book.has_expired(first + 999.9)
        assert engine._by_bandit([], first + 1000.0).keys() >= {"b3"}

    with_all(store, inf, story)


def test_what_another_worker_took_is_lost(store: Store) -> None:
    async def story(engine: Engine) -> None:
        reported: list[object] = []
        keeper = engine._background.leases
        keeper._report = reported.append
        store.renew("first", "", -1.0)
        taken = engine.live_bandits["b5"]
        assert store.claim(taken.row.id, "second", "http://second", 60.0)
        keeper.look_after(engine.live_bandits)
        assert reported == [Lost("b5", taken.lease)]

    with_all(store, 600.0, story)


def test_a_bandit_of_its_own_that_was_dropped_is_taken_in_again(store: Store) -> None:
    async def story(engine: Engine) -> None:
        dropped = engine.live_bandits.pop("b7")
        engine._background.leases.look_after(engine.live_bandits)
        while "b7" not in engine.live_bandits:
            await asyncio.sleep(0.02)
        assert engine.live_bandits["b7"].lease == dropped.lease, "nobody else had it meanwhile"

    with_all(store, inf, story)


def test_a_restarted_worker_has_its_own_bandits_and_its_new_url(store: Store) -> None:
    store.renew("first", "http://before", inf)
    bandit = store.bandit("b0")
    assert store.claim(bandit.id, "first", "http://before", inf)

    async def story(engine: Engine) -> None:
        while store.bandit("b0").url != "http://first":
            await asyncio.sleep(0.02)

    with_all(store, inf, story)
    assert store.bandit("b0").owner is None, "released when it stopped"
