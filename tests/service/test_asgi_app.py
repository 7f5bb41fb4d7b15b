"""A real service on other servers: mounted in an application, under a lifespan, on uvicorn."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.middleware.gzip import GZipMiddleware

from driftbandits import InputError, asgi_app
from driftbandits.service.server import lock_folder
from tests.browser import eventually
from tests.service.serving import STARTING, ask, free_port, mounted

DOCS = Path(__file__).parents[2] / "docs" / "how_to" / "run_the_service.md"
SHOP = {"name": "shop", "arms": ["red", "green"], "policy": "thompson", "seed": 1}


def ask_in_turn(app: Any, asks: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await asks(client)

    asyncio.run(asyncio.wait_for(run(), STARTING))


def test_mounted_under_a_prefix(tmp_path: Path) -> None:
    app = mounted(asgi_app(tmp_path, without_keys=True), "/a b")

    async def asks(client: httpx.AsyncClient) -> None:
        async with app.router.lifespan_context(app):
            assert (await client.post("/a b/v1/bandits", json=SHOP)).status_code == 201
            shop = "/a b/v1/bandits/shop"
            made = (await client.post(f"{shop}/decisions", json={"id": "x"})).json()
            assert made["arm"] in SHOP["arms"]
            reward = {"id": "x", "reward": 1}
            assert (await client.post(f"{shop}/rewards", json=reward)).json()["status"] == "learned"
            other = await client.post(f"{shop}/rewards", json={**reward, "reward": 0})
            assert other.json()["error"]["code"] == "contradictory_reward"
            log = await client.get(f"{shop}/log?format=csv")
            assert log.headers["content-type"] == "text/csv; charset=utf-8"
            assert len(log.text.splitlines()) == 2
            missing = await client.get("/a b/v1/bandits/n%C3%A4 m%25e")
            assert "'nä m%e'" in missing.json()["error"]["message"]
            page = await client.get("/a b", follow_redirects=True)
            assert page.url.path == "/a b/"
            assert "<title>" in page.text

    ask_in_turn(app, asks)


def test_middleware_of_others_may_change_an_answer(tmp_path: Path) -> None:
    app = mounted(asgi_app(tmp_path, without_keys=True), "/bandits")
    app.add_middleware(GZipMiddleware, minimum_size=1)

    async def asks(client: httpx.AsyncClient) -> None:
        async with app.router.lifespan_context(app):
            made = await client.post("/bandits/v1/bandits", json=SHOP)
            assert made.status_code == 201
            assert made.headers["content-encoding"] == "gzip"
            assert made.json()["name"] == "shop"

    ask_in_turn(app, asks)


def test_where_its_data_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTBANDITS_DATA", str(tmp_path / "named"))
    monkeypatch.chdir(tmp_path)

    async def asks(client: httpx.AsyncClient) -> None:
        async with app:
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/v1/bandits")).json()["error"]["code"] == "no_key"

    app = asgi_app()
    assert not (tmp_path / "named").exists()  # nothing happens before it starts
    ask_in_turn(app, asks)
    assert (tmp_path / "named" / "driftbandits.sqlite").exists()
    lock_folder(tmp_path / "named", by_database=False).release()  # it is free again
    app = asgi_app("given")
    ask_in_turn(app, asks)
    assert (tmp_path / "given" / "driftbandits.sqlite").exists()
    monkeypatch.delenv("DRIFTBANDITS_DATA")
    app = asgi_app()
    ask_in_turn(app, asks)
    assert (tmp_path / "driftbandits-data" / "driftbandits.sqlite").exists()


def test_a_database_needs_the_address_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTBANDITS_DATABASE", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(InputError, match="url must be given with a database"):
        asgi_app()
    asgi_app("folder")  # which goes before the environment
    monkeypatch.setenv("DRIFTBANDITS_URL", "http://10.0.0.7:8000")
    asgi_app()


def test_a_start_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path, by_database=False)
    said: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(asgi_app(tmp_path)({"type": "lifespan"}, receive, send))
    lock.release()
    (message,) = said
    assert message["type"] == "lifespan.startup.failed"
    assert message["message"].startswith("--data must be a folder that no other service is using")


def test_the_example_of_the_docs_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n([^`]*asgi_app.*?)^```", DOCS.read_text(), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(block, "service.md", "exec"), names)
    app = names["app"]

    async def asks(client: httpx.AsyncClient) -> None:
        async with app.router.lifespan_context(app):
            assert (await client.get("/bandits/readyz")).json() == {"status": "ready"}

    ask_in_turn(app, asks)


def test_on_uvicorn_from_start_to_stop(tmp_path: Path) -> None:
    """The command of the docs."""
    (command,) = re.findall(r"^DRIFTBANDITS_DATA=\S+ (uvicorn .*)$", DOCS.read_text(), re.M)
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", *command.split(), "--port", str(port)],
        env=os.environ | {"DRIFTBANDITS_DATA": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        key = next(line.strip() for line in process.stdout if line.startswith("  db_"))
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: is_ready(url), STARTING)
        assert ask(url, "POST", "/v1/bandits", SHOP, key)[0] == 201
        status, made = ask(url, "POST", "/v1/bandits/shop/decisions", {}, key)
        assert (status, made["arm"] in SHOP["arms"]) == (200, True)
        assert ask(url, "GET", "/v1/bandits/shop/log", None, key)[1].count(b"\n") == 2
        assert ask(url, "POST", "/v1/bandits/shop/decisions", {})[0] == 401
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STARTING)
    lock_folder(tmp_path, by_database=False).release()


def is_ready(url: str) -> bool:
    try:
        return ask(url, "GET", "/readyz")[0] == 200
    except OSError:
        return False
