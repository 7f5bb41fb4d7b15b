"""Requests for another worker: one that is silent keeps nobody, and no proxy hears them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from driftbandits.service.errors import ApiError
from driftbandits.service.http import targets
from driftbandits.service.http.forwarding import FORWARDED_HEADER, Forwarder
from driftbandits.service.http.protocol import Request, Response, json_response
from tests.service.http.raw_http import Listening, StandIn

PATIENCE = 20.0  # seconds
LIST = b'{"bandits": [{"name": "shop", "open": 3}]}'
DECIDE = b"/v1/bandits/shop/decisions"


class Worker:
    """Another worker: it answers when it may, and notes what it heard."""

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.gate, self.heard = gate, list[tuple[str, bytes, str | None]]()
        self.is_alive = gate is None
        self.engine: str | None = None  # what it says of it
        self.asked = 0  # whether it is alive

    async def start(self) -> "Worker":
        self._listening = Listening(StandIn(self._answer))
        self.connections = self._listening.state.connections
        self.url = f"http://127.0.0.1:{self._listening.address[1]}"
        self._serving = asyncio.create_task(self._listening.serve())
        return self

    async def _answer(self, request: Request) -> Response:
        if request.raw_path == b"/healthz":
            self.asked += 1
            if self.is_alive:
                says = {"status": "alive"} | ({"engine": self.engine} if self.engine else {})
                return json_response(200, says)
        else:
            key = request.header(b"authorization")
            self.heard.append((request.method, request.raw_path, key))
        if self.gate is not None:
            await self.gate.wait()
        return Response(200, LIST, "application/json", (("retry-after", "3"), ("x-other", "4")))

    async def stop(self) -> None:
        self._listening.stop()
        await self._serving


def request(method: str = "POST", path: bytes = DECIDE) -> Request:
    return Request(method, path, {b"authorization": b"Bearer secret"})


Story = Callable[[Forwarder, Worker, Worker, asyncio.Event], Awaitable[None]]


def told(story: Story) -> None:
    """With a worker that answers, and one that is frozen until the gate is opened."""

    async def main() -> None:
        gate = asyncio.Event()
        healthy, frozen = await Worker().start(), await Worker(gate).start()
        forwarder = Forwarder(None, "one", PATIENCE)  # type: ignore[arg-type]
        try:
            await asyncio.wait_for(story(forwarder, healthy, frozen, gate), 3 * PATIENCE)
        finally:
            gate.set()
            await forwarder.close()
            await healthy.stop()
            await frozen.stop()

    asyncio.run(main())


async def code_of(answer: Awaitable[Response]) -> str | int:
    try:
        return (await answer).status
    except ApiError as error:
        return error.code


async def until(holds: Callable[[], Any]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_an_answer_is_passed_back() -> None:
    async def story(forwarder: Forwarder, healthy: Worker, *_: Any) -> None:
        response = await forwarder.forward(request(), healthy.url)
        expected = 200, LIST, "application/json", (("retry-after", "3"),)
        assert response[:4] == expected
        head = await forwarder.forward(request("HEAD", b"/v1/bandits/shop"), healthy.url)
        assert head.body == LIST, "whose length the caller is told"
        assert healthy.heard == [
            ("POST", DECIDE, "Bearer secret"),
            ("GET", b"/v1/bandits/shop", "Bearer secret"),
        ]

    told(story)


def test_all_bandits_of_a_worker_are_one_request() -> None:
    async def story(forwarder: Forwarder, healthy: Worker, *_: Any) -> None:
        described = await forwarder.describe_all(request(), healthy.url)
        assert described == {"shop": {"name": "shop", "open": 3}}
        again = request("GET", b"/v1/bandits")
        again.headers[FORWARDED_HEADER.encode()] = b"two"
        assert await forwarder.describe_all(again, healthy.url) == {}, "nor round in circles"
        assert healthy.heard == [("GET", b"/v1/bandits", "Bearer secret")]

    told(story)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that owes an answer is soon asked whether it is alive."""
    monkeypatch.setattr(targets, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(targets, "ALIVE_SECONDS", 0.5)


@pytest.mark.usefixtures("hasty")
def test_nobody_waits_for_a_silent_worker() -> None:
    async def story(
        forwarder: Forwarder, healthy: Worker, frozen: Worker, gate: asyncio.Event
    ) -> None:
        asked = [code_of(forwarder.forward(request(), frozen.url)) for _ in range(5)]
        assert await asyncio.gather(*asked) == ["moving"] * 5
        assert frozen.asked == 1, "once for all"
        assert await forwarder.describe_all(request(), frozen.url) == {}
        assert frozen.asked == 2
        assert {path for _, path, _ in frozen.heard} == {DECIDE}, "it must be alive first"
        gate.set()
        assert await code_of(forwarder.forward(request(), frozen.url)) == 200

    told(story)


@pytest.mark.usefixtures("hasty")
def test_a_worker_that_is_alive_is_waited_for() -> None:
    """Creating a bandit and adding an arm compile, which takes seconds."""

    async def story(
        forwarder: Forwarder, healthy: Worker, slow: Worker, gate: asyncio.Event
    ) -> None:
        slow.is_alive = True
        asked = asyncio.create_task(code_of(forwarder.forward(request(), slow.url)))
        await until(lambda: slow.asked == 3)
        assert not asked.done()
        gate.set()
        assert await asked == 200

    told(story)


@pytest.mark.usefixtures("hasty")
def test_nobody_waits_for_an_engine_that_has_come_to_a_halt() -> None:
    """Behind an event loop that answers: the worker is alive, but will say nothing."""

    async def story(
        forwarder: Forwarder, healthy: Worker, halted: Worker, gate: asyncio.Event
    ) -> None:
        halted.is_alive, halted.engine = True, targets.HALTED
        asked = [code_of(forwarder.forward(request(), halted.url)) for _ in range(5)]
        assert await asyncio.gather(*asked) == ["moving"] * 5
        heard = len(halted.heard)
        assert await code_of(forwarder.forward(request(), halted.url)) == "moving"
        assert len(halted.heard) == heard, "it must work first"
        halted.engine = targets.WORKING
        asked_again = asyncio.create_task(code_of(forwarder.forward(request(), halted.url)))
        asks = halted.asked
        await until(lambda: halted.asked > asks + 2)
        assert not asked_again.done(), "what takes long is waited for"
        gate.set()
        assert await asked_again == 200

    told(story)


def test_a_slow_worker_takes_no_connections_to_others() -> None:
    async def story(
        forwarder: Forwarder, healthy: Worker, frozen: Worker, gate: asyncio.Event
    ) -> None:
        frozen.is_alive = True
        asked = [
            asyncio.create_task(code_of(forwarder.forward(request(), frozen.url)))
            for _ in range(targets.MOST_WAITING)
        ]
        await until(lambda: len(frozen.heard) == targets.CONNECTIONS)
        assert await code_of(forwarder.forward(request(), healthy.url)) == 200
        assert not any(task.done() for task in asked), "all of them still wait"
        assert await code_of(forwarder.forward(request(), frozen.url)) == "moving", "one too many"
        gate.set()
        assert await asyncio.gather(*asked) == [200] * targets.MOST_WAITING

    told(story)


def test_no_proxy_hears_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(forwarder: Forwarder, healthy: Worker, proxy: Worker, *_: Any) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert await code_of(forwarder.forward(request(), healthy.url)) == 200
        assert proxy.heard == []

    told(story)


def test_connections_to_a_worker_that_is_gone_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(
        forwarder: Forwarder, healthy: Worker, frozen: Worker, gate: asyncio.Event
    ) -> None:
        gate.set()
        assert await code_of(forwarder.forward(request(), frozen.url)) == 200
        assert len(frozen.connections) == 1
        monkeypatch.setattr(targets, "IDLE_SECONDS", 0.0)
        assert await code_of(forwarder.forward(request(), healthy.url)) == 200
        await until(lambda: not frozen.connections)

    told(story)
