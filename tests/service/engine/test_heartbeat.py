"""An engine that hangs is found out, and one that works for long is not taken for it."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftbandits.agents.requests import Request
from driftbandits.service.engine import heartbeat, pace, turns
from driftbandits.service.engine.commands import Decide, Inspect
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.heartbeat import Heartbeat
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import Reviver
from driftbandits.service.errors import ApiError
from driftbandits.service.http.handlers import Handlers
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG, play, until

PATIENCE = 60.0
MANY = 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", CONFIG)
    yield store
    store.close()


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    found: list[None] = []
    beat = Heartbeat.beat
    monkeypatch.setattr(Heartbeat, "beat", lambda heart: found.append(None) or beat(heart))
    return found


async def says(handlers: Any) -> tuple[str, str]:
    """Of the engine, to other workers; and whether it is ready."""
    alive = await handlers.healthy(None, None)
    assert alive.status == 200, "or it would be restarted"
    try:
        await handlers.ready(None, None)
    except ApiError as error:
        return json.loads(alive.body)["engine"], error.code
    return json.loads(alive.body)["engine"], "ready"


def test_one_that_hangs_says_so_and_is_not_ready(store: Store) -> None:
    async def story(engine: Engine) -> None:
        handlers, free = Handlers(store, engine, None), threading.Event()  # type: ignore[arg-type]
        await engine.submit("shop", Inspect(lambda live: live.seq))
        await until(engine.is_moving)
        assert await says(handlers) == ("working", "ready")
        hanging = engine.submit("shop", Inspect(lambda _: free.wait(PATIENCE)))
        await until(lambda: not engine.is_moving())
        assert await says(handlers) == ("halted", "stuck")
        assert engine.is_well(), "its bandits are not given up yet"
        free.set()
        assert await hanging
        await until(engine.is_moving)
        assert await says(handlers) == ("working", "ready")
        handlers.stop()

    play(store, story)


def test_after_a_while_its_bandits_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    heart = Heartbeat()
    assert not heart.is_halted()
    for limit, is_passed in [("HALT", heart.is_halted), ("STUCK", heart.is_stuck)]:
        monkeypatch.setattr(heartbeat, limit, -1.0)
        assert is_passed()


def test_long_work_in_steps_is_no_halt(store: Store, monkeypatch, beats: list[None]) -> None:
    monkeypatch.setattr(pace, "STEP", 0.0)
    monkeypatch.setattr(turns, "TURN", 0.0)

    async def story(engine: Engine) -> None:
        await engine.submit("shop", Inspect(lambda live: live.seq))
        before = len(beats)
        await engine.submit("shop", Decide([Request() for _ in range(MANY)]))
        assert len(beats) - before >= MANY

    play(store, story)


def test_nor_are_revival_and_compilation(store: Store, monkeypatch, beats: list[None]) -> None:
    """They are on other threads, and the engine's goes on."""
    claim, free = Reviver._claim, threading.Event()

    def wait_and_claim(reviver: Reviver, name: str) -> LiveBandit:
        assert free.wait(PATIENCE)
        return claim(reviver, name)

    monkeypatch.setattr(Reviver, "_claim", wait_and_claim)

    async def story(engine: Engine) -> None:
        waiting = engine.submit("shop", Decide([Request(id="x")]))
        before = len(beats)
        await until(lambda: len(beats) > before + 3)
        assert not waiting.done()
        free.set()
        assert await asyncio.wait_for(waiting, PATIENCE)

    play(store, story)
