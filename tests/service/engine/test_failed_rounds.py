"""An error of our own in the engine: everybody is answered at once, and the log is right."""

import asyncio
import threading
from typing import Any

import pytest

from driftbandits.agents.requests import Request
from driftbandits.service.engine import pace, turns
from driftbandits.service.engine.commands import Correct, Decide, Delete, Inspect
from driftbandits.service.engine.committer import Committer
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import Reviver, revive
from driftbandits.service.engine.turns import Work
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import all_of, codes, play
from tests.service.engine.test_turns import Held, store

__all__ = ["store"]  # a fixture: pytest finds it by name

MANY = 40
PATIENCE = 30.0  # seconds, half of what a caller would wait


@pytest.fixture(autouse=True)
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is one step, and a step one decision."""
    monkeypatch.setattr(pace, "STEP", 0.0)
    monkeypatch.setattr(turns, "TURN", 0.0)


def decide(engine: Engine, bandit: str, *ids: str) -> asyncio.Future:
    return engine.submit(bandit, Decide([Request(id=id) for id in ids]))


async def revived(engine: Engine) -> None:
    for name in ("busy", "other"):
        await engine.submit(name, Inspect(lambda live: live.seq))


def fails_once(monkeypatch: pytest.MonkeyPatch, kind: type, method: str) -> None:
    """From now on, and only the first time."""
    working, failed = getattr(kind, method), list[Any]()

    def fail(*arguments: Any, **options: Any) -> Any:
        if not failed:
            failed.append(arguments)
            raise RuntimeError("a mistake of ours")
        return working(*arguments, **options)

    monkeypatch.setattr(kind, method, fail)


def assert_sound(store: Store, name: str) -> None:
    """What can be rebuilt from the log is what was decided."""
    row = store.bandit(name)
    assert row
    lease = store.claim(row.id, "first", "http://first", 60.0)
    assert lease
    again = revive(store, row, lease)
    assert again.mismatches == 0
    assert again.live.book.counts.decisions == len(store.events(row.id, 0))


@pytest.mark.parametrize(
    ("kind", "method", "command"),
    [
        (Engine, "_delete", Delete()),
        (Engine, "_begin", Decide([Request(id="x")])),
        (Engine, "_commit", Decide([Request(id="x")])),
        (Committer, "write", Decide([Request(id="x")])),
        (Work, "to_be_committed", Decide([Request(id="x")])),
        (Engine, "_correct", Correct("x", 1.0)),
        (LiveBandit, "past", Correct("x", 1.0)),
    ],
)
def test_calls_of_earlier_rounds_are_answered_too(
    store: Store, monkeypatch: pytest.MonkeyPatch, kind: type, method: str, command: Any
) -> None:
    async def story(engine: Engine) -> None:
        await revived(engine)
        held = Held(monkeypatch)
        batch = decide(engine, "busy", *map(str, range(MANY)))
        await held.begun()  # it takes many rounds
        behind = decide(engine, "busy", "behind")
        fails_once(monkeypatch, kind, method)
        failing = engine.submit("other", command)
        held.set_free()
        answered = await asyncio.wait_for(all_of(batch, behind, failing), PATIENCE)
        first, *others = codes(answered)
        assert first == "internal"
        assert set(others) <= {"internal", "fine"}, "those of a later round are served"
        again = await asyncio.wait_for(decide(engine, "busy", "0", "behind"), PATIENCE)
        assert [made.id for made in again] == ["0", "behind"]
        assert codes(await all_of(decide(engine, "other", "x"))) == ["fine"]

    play(store, story)
    assert_sound(store, "busy")
    assert_sound(store, "other")


def test_what_is_being_written_is_answered_as_it_turns_out(store: Store, monkeypatch) -> None:
    """And not as failed: it is in the log."""

    async def story(engine: Engine) -> None:
        await revived(engine)
        write, append = engine._committer.write, store.append
        writing, free = threading.Event(), threading.Event()

        def wait_and_append(entries: list) -> set:
            writing.set()
            assert free.wait(PATIENCE)
            return append(entries)

        monkeypatch.setattr(store, "append", wait_and_append)
        monkeypatch.setattr(
            engine._committer, "write", lambda group, **_: write(group, in_background=True)
        )
        written = decide(engine, "busy", "a")
        assert await asyncio.to_thread(writing.wait, PATIENCE)
        fails_once(monkeypatch, Engine, "_begin")
        failing = decide(engine, "other", "b")
        asyncio.get_running_loop().call_later(0.1, free.set)
        answered = await asyncio.wait_for(all_of(written, failing), PATIENCE)
        assert codes(answered) == ["fine", "internal"]

    play(store, story)
    assert_sound(store, "busy")


def test_who_waits_for_a_bandit_that_is_being_revived_is_answered_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the bandit is revived once more, whatever becomes of the first time."""

    async def story(engine: Engine) -> None:
        claim, free = Reviver._claim, threading.Event()

        def wait_and_claim(reviver: Reviver, name: str) -> LiveBandit:
            assert name == "other" or free.wait(PATIENCE)
            return claim(reviver, name)

        monkeypatch.setattr(Reviver, "_claim", wait_and_claim)
        waiting = decide(engine, "busy", "a")
        await decide(engine, "other", "b")
        fails_once(monkeypatch, Engine, "_commit")
        failing = decide(engine, "other", "c")
        answered = await asyncio.wait_for(all_of(waiting, failing), PATIENCE)
        assert codes(answered) == ["internal", "internal"]
        again = decide(engine, "busy", "a")
        free.set()
        assert codes(await asyncio.wait_for(all_of(again), PATIENCE)) == ["fine"]
        assert codes(await all_of(decide(engine, "busy", "d"))) == ["fine"]

    play(store, story)
    assert_sound(store, "busy")
