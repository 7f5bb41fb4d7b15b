"""One worker: what a request gets that takes too long, or comes when it should not."""

import asyncio
import json
from math import inf
from pathlib import Path

import httpx
import pytest

from driftbandits.service.engine.commands import Command, Decide, Inspect
from driftbandits.service.engine.worker import Worker
from driftbandits.service.http import loading
from driftbandits.service.http.app import Service
from driftbandits.service.http.protocol import Request, Response
from driftbandits.service.store.store import Store
from tests.service.http.raw_http import PATIENCE, PATIENT, Listening


async def hang(*_: object) -> Response:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


def test_a_request_that_is_given_up_is_told_so(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'bandits.sqlite'}")
    service = Service(store, Worker("one", "http://one", inf), open_to_all=True)
    endpoint = service._endpoints["/healthz"]["GET"]
    service._endpoints["/healthz"]["GET"] = endpoint._replace(handler=hang)

    async def main() -> Response:
        request = Request("GET", b"/healthz", {b"host": b"localhost"})
        task = asyncio.create_task(service.respond(request))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    response = asyncio.run(main())
    store.close()
    assert response.status == 504
    assert response.headers == (("retry-after", "1"),)
    assert json.loads(response.body)["error"]["code"] == "no_answer_in_time"


def test_on_a_socket_until_it_stops(tmp_path: Path) -> None:
    """As many at a time as may be; and who still waits in the end is told so."""
    store = Store(f"sqlite:///{tmp_path / 'bandits.sqlite'}")
    limits = PATIENT._replace(in_flight=2)
    service = Service(store, Worker("one", "http://one", inf), open_to_all=True, limits=limits)
    endpoint = service._endpoints["/v1/bandits"]["GET"]
    service._endpoints["/v1/bandits"]["GET"] = endpoint._replace(handler=hang)
    listening = Listening(service)  # type: ignore[arg-type]

    async def ask(path: str = "/v1/bandits") -> tuple[int, str]:
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            response = await client.get(f"http://127.0.0.1:{listening.address[1]}{path}")
            return response.status_code, response.json().get("error", {}).get("code")

    async def main() -> None:
        serving = asyncio.create_task(listening.serve())
        waiting = [asyncio.create_task(ask()) for _ in range(2)]
        while service.metrics.now_in_flight < 2:
            await asyncio.sleep(0.001)
        assert await ask() == (429, "too_busy")
        listening.app.tell_to_stop(PATIENCE)
        assert await ask() == (503, "stopping")
        assert await ask("/healthz") == (200, None)
        listening.stop(grace=0.0)
        assert await asyncio.gather(*waiting) == [(504, "no_answer_in_time")] * 2
        await serving

    asyncio.run(main())
    store.close()


@pytest.mark.parametrize(("ttl", "status", "asked"), [(3.0, 503, Inspect), (inf, 504, Decide)])
def test_nobody_waits_for_a_bandit_that_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ttl: float, status: int, asked: type
) -> None:
    """Unless the worker is alone: then nobody else could serve it sooner."""
    monkeypatch.setattr(loading, "LOADING_SECONDS", 0.01)
    store = Store(f"sqlite:///{tmp_path / 'bandits.sqlite'}")
    store.create_bandit("shop", {})
    service = Service(store, Worker("one", "http://one", ttl), open_to_all=True)
    commands: list[Command] = []

    async def main() -> Response:
        def submit(bandit: str, command: Command) -> asyncio.Future[object]:
            commands.append(command)
            return asyncio.get_running_loop().create_future()  # it is being compiled

        monkeypatch.setattr(service.engine, "submit", submit)
        path, headers = b"/v1/bandits/shop/decisions", {b"host": b"localhost"}
        request = Request("POST", path, headers, body=b"{}")
        task = asyncio.create_task(service.respond(request))
        while not commands:
            await asyncio.sleep(0.001)
        await asyncio.wait([task], timeout=0.1 if ttl == inf else None)
        task.cancel()
        return await task

    assert asyncio.run(main()).status == status
    assert [type(command) for command in commands] == [asked]
    store.close()
