"""What a worker forgets: bandits that were deleted, requests that were refused."""

import asyncio
import gc
import json
import threading
from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path
from typing import Any

from driftbandits.service.engine.worker import Worker
from driftbandits.service.free_memory import giving_back_memory
from driftbandits.service.http.app import Service
from driftbandits.service.http.protocol import Request, Response
from driftbandits.service.http.trial import try_out
from driftbandits.service.store.store import Store
from tests.browser import eventually
from tests.live_objects import count, without_collector

OURS = ("LiveBandit", "DecisionBook", "Learner", "Monitor", "Programs", "Request", "Call")
Ask = Callable[..., Awaitable[Response]]


def with_service(folder: Path, work: Callable[[Service, Ask], Awaitable[None]]) -> None:
    """One worker without connections."""
    store = Store(f"sqlite:///{folder / 'bandits.sqlite'}")
    service = Service(store, Worker("one", "http://one", inf), open_to_all=True)

    async def ask(method: str, path: str, body: Any = None) -> Response:
        content = b"" if body is None else json.dumps(body).encode()
        headers = {b"host": b"localhost"}
        return await service.respond(Request(method, path.encode(), headers, body=content))

    async def main() -> None:
        service.start()
        try:
            await work(service, ask)
        finally:
            await service.stop()

    asyncio.run(main())
    store.close()


def counts() -> dict[str, int]:
    return {kind: count(kind) for kind in OURS}


def no_more_than(before: dict[str, int]) -> bool:
    return all(number <= before[kind] for kind, number in counts().items())


async def come_and_go(ask: Ask, name: str) -> None:
    bandit = f"/v1/bandits/{name}"
    body = {"name": name, "arms": ["red", "green"], "policy": "thompson", "seed": 1}
    assert (await ask("POST", "/v1/bandits", body)).status == 201
    assert (await ask("POST", f"{bandit}/decisions", {"id": "x"})).status == 200
    assert (await ask("POST", f"{bandit}/rewards", {"id": "x", "reward": 1})).status == 200
    assert (await ask("DELETE", bandit)).status == 204


def test_nothing_of_ours_stays_of_deleted_bandits(tmp_path: Path) -> None:
    async def work(service: Service, ask: Ask) -> None:
        await come_and_go(ask, "first")
        with without_collector():
            before, labels = counts(), len(service.metrics.text().split())
            for n in range(200):
                await come_and_go(ask, f"bandit {n}")
            await asyncio.to_thread(eventually, lambda: no_more_than(before))
        assert len(service.metrics.text().split()) == labels

    with_service(tmp_path, work)


def test_refused_requests_are_forgotten_at_once(tmp_path: Path) -> None:
    """Not when the collector comes: each may hold a body of megabytes."""

    async def work(service: Service, ask: Ask) -> None:
        body = {"name": "shop", "arms": ["red", "green"], "policy": "thompson"}
        await ask("POST", "/v1/bandits", body)
        await ask("POST", "/v1/bandits/shop/decisions", {"id": "x"})
        with without_collector():
            before = count("Request")  # also of other tests
            for _ in range(20):
                unknown = await ask("POST", "/v1/bandits/shop/rewards", {"id": "y", "reward": 1})
                large = await ask("POST", "/v1/bandits/shop/rewards", {"id": "x", "reward": 9})
                nobody = await ask("POST", "/v1/bandits/nobody/decisions", {})
                again = await ask("POST", "/v1/bandits", {**body, "policy": "ucb"})
                told = [unknown.status, large.status, nobody.status, again.status]
                assert told == [404, 422, 404, 409]
            assert count("Request") <= before

    with_service(tmp_path, work)


def test_jax_remembers_nothing_of_settings_that_are_tried_out_again() -> None:
    config = {"arms": ["red", "green"], "policy": "thompson"}
    try_out(config)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        try_out(config)
    gc.collect()
    assert len(gc.get_objects()) < before + 100


def test_free_memory_is_given_back_until_the_worker_ends() -> None:
    with giving_back_memory(every=0.001):
        assert "driftbandits-memory" in thread_names()
    assert "driftbandits-memory" not in thread_names()


def thread_names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]
