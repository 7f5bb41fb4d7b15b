"""While a bandit is rebuilt for a correction, others go on, also those that are corrected, too."""

import asyncio
import threading
from typing import Any

import pytest

from driftbandits.agents.requests import Request
from driftbandits.service.engine import correcting
from driftbandits.service.engine.commands import Correct, Decide, Reward
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.reviver import Reviver
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import all_of, codes, play
from tests.service.engine.test_failed_rounds import fails_once
from tests.service.engine.test_turns import store

__all__ = ["store"]  # a fixture: pytest finds it by name

PATIENCE = 30.0  # seconds, half of what a caller would wait


class Held:
    """The bandit `busy` is rebuilt when it is set free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rebuilt, self.begun, self.free = correcting.rebuilt, threading.Event(), threading.Event()

        def wait_and_rebuild(store: Store, live: Any, event: Any) -> Any:
            if live.row.name == "busy":
                self.begun.set()
                assert self.free.wait(PATIENCE)
            return rebuilt(store, live, event)

        monkeypatch.setattr(correcting, "rebuilt", wait_and_rebuild)


async def with_a_reward(engine: Engine) -> None:
    for name in ("busy", "other"):
        await engine.submit(name, Decide([Request(id="1")]))
        await engine.submit(name, Reward([("1", 1.0)]))


def decide(engine: Engine, name: str, id: str) -> Any:
    return asyncio.wait_for(engine.submit(name, Decide([Request(id=id)])), PATIENCE)


def corrections(store: Store, name: str) -> list[str]:
    row = store.bandit(name)
    assert row
    return [event.id for event in store.events(row.id, 0) if event.kind == "correction"]


def test_a_bandit_goes_on_until_it_can_be_rebuilt(store: Store, monkeypatch) -> None:
    async def story(engine: Engine) -> None:
        await with_a_reward(engine)
        held = Held(monkeypatch)
        first = engine.submit("busy", Correct("1", 0.0))
        assert await asyncio.to_thread(held.begun.wait, PATIENCE)
        second = engine.submit("other", Correct("1", 0.0))
        (made,) = await decide(engine, "other", "2")
        assert made.id == "2"
        assert not second.done()
        held.free.set()
        for correction in (first, second):
            assert (await asyncio.wait_for(correction, PATIENCE)).reward == 0.0

    play(store, story)
    assert corrections(store, "busy") == corrections(store, "other") == ["1"]


def test_a_bandit_that_was_rebuilt_too_late_answers_nobody(store: Store, monkeypatch) -> None:
    """A round has failed meanwhile, and the bandit is being revived for others."""

    async def story(engine: Engine) -> None:
        await with_a_reward(engine)
        held, claim, claiming = Held(monkeypatch), Reviver._claim, threading.Event()

        def wait_and_claim(reviver: Reviver, name: str) -> Any:
            assert name == "other" or claiming.wait(PATIENCE)
            return claim(reviver, name)

        monkeypatch.setattr(Reviver, "_claim", wait_and_claim)
        correction = engine.submit("busy", Correct("1", 0.0))
        assert await asyncio.to_thread(held.begun.wait, PATIENCE)
        put_off = engine.submit("other", Correct("1", 0.0))
        fails_once(monkeypatch, Engine, "_commit")
        failing = decide(engine, "other", "2")
        failed = await asyncio.wait_for(all_of(correction, put_off, failing), PATIENCE)
        assert codes(failed) == ["internal"] * 3
        behind = asyncio.create_task(decide(engine, "busy", "3"))
        held.free.set()
        await decide(engine, "other", "4")
        claiming.set()
        assert [made.id for made in await behind] == ["3"]

    play(store, story)
    assert corrections(store, "busy") == corrections(store, "other") == []
