"""`/readyz` says what is wrong with the database, soon, and without asking it all the time."""

import asyncio
import threading

import pytest

from driftbandits.service.errors import ApiError
from driftbandits.service.http import readiness
from driftbandits.service.http.readiness import Readiness
from driftbandits.service.store.health import Unhealthy

PATIENCE = 20.0  # seconds


class FakeStore:
    """Finds what it is told to, when it may."""

    def __init__(self) -> None:
        self.asked, self.problem = 0, None
        self.gate = threading.Event()
        self.gate.set()

    def check_health(self) -> None:
        self.asked += 1
        assert self.gate.wait(PATIENCE)
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


async def code_of(ready: Readiness) -> str:
    try:
        await ready.check()
    except ApiError as error:
        return error.code
    return "ready"


def test_the_database_is_asked_once_for_all_who_ask_soon(store: FakeStore) -> None:
    async def main() -> list[str]:
        ready = Readiness(store)
        return [*await asyncio.gather(*(code_of(ready) for _ in range(20))), await code_of(ready)]

    assert asyncio.run(main()) == ["ready"] * 21
    assert store.asked == 1


def test_it_is_asked_again_later(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_SECONDS", -1.0)

    async def main() -> list[str]:
        ready, found = Readiness(store), []
        problems = [None, Unhealthy("is full", "make room"), OSError("gone"), None]
        for store.problem in problems:
            found.append(await code_of(ready))
        return found

    assert asyncio.run(main()) == ["ready", "unhealthy_database", "no_database", "ready"]


def test_one_that_hangs_is_waited_for_once(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a thread for each who asks, or there would soon be none left for decisions."""
    monkeypatch.setattr(readiness, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)
    store.gate.clear()

    async def main() -> None:
        ready = Readiness(store)
        assert [await code_of(ready) for _ in range(5)] == ["unhealthy_database"] * 5
        assert store.asked == 1
        monkeypatch.setattr(readiness, "PATIENCE_SECONDS", PATIENCE)
        store.gate.set()
        assert await code_of(ready) == "ready"

    asyncio.run(main())


def test_one_that_hangs_keeps_nobody_from_stopping(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "PATIENCE_SECONDS", 0.0)
    store.gate.clear()
    before = set(threading.enumerate())
    assert asyncio.run(code_of(Readiness(store))) == "unhealthy_database"
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    store.gate.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
