"""Connections to other workers: some for each, so that no worker can take those to another.

An answer may take long, for example where a program is compiled. So a worker that owes one for a
while is asked whether it is alive. If that is not answered either, or its engine has come to a
halt, nobody waits for it any more.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from driftbandits.service import errors

CONNECTIONS = 32  # to one worker
MOST_WAITING = 256  # requests to one worker; more would only fill this one
IDLE_SECONDS = 60.0  # after which the connections to a worker are closed
QUIET_SECONDS = 0.8  # after which a worker that owes an answer is asked whether it is alive
ALIVE_SECONDS = 0.6  # that it may take to say so
WORKING, HALTED = "working", "halted"  # what it says of its engine


class Target:
    """Another worker."""

    def __init__(self, url: str, ssl_context: ssl.SSLContext) -> None:
        self._url = url
        self._client = new_client(ssl_context, CONNECTIONS)
        self._asks_if_alive = new_client(ssl_context, 1)  # all others may be taken
        self._alive: asyncio.Future[bool] | None = None  # the last answer to that
        self.waiting = 0  # requests
        self.used = time.monotonic()

    async def request(self, method: str, path: str, **rest: Any) -> httpx.Response:
        """Sends a request; raises httpx.HTTPError if the worker does not respond."""
        if self._alive and not (self._alive.done() and self._alive.result()):
            await self._check_alive()
        answer = asyncio.ensure_future(self._client.request(method, self._url + path, **rest))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=QUIET_SECONDS)
                if not answer.done():
                    await self._check_alive()
            return answer.result()
        finally:
            answer.cancel()

    async def _check_alive(self) -> None:
        """Checks once for all callers whether the worker is alive."""
        if self._alive is None or self._alive.done():
            self._alive = asyncio.ensure_future(self._is_alive())
        if not await asyncio.shield(self._alive):
            raise httpx.ReadTimeout(f"{self._url} is silent, or its engine is")

    async def _is_alive(self) -> bool:
        try:
            async with asyncio.timeout(ALIVE_SECONDS):
                url = f"{self._url}/healthz"
                answer = await self._asks_if_alive.get(url, timeout=ALIVE_SECONDS)
        except (httpx.HTTPError, TimeoutError):
            return False
        return not says_halted(answer)

    async def close(self) -> None:
        await self._client.aclose()
        await self._asks_if_alive.aclose()


def says_halted(answer: httpx.Response) -> bool:
    """A worker of an older version says nothing of its engine."""
    try:
        return bool(answer.json()["engine"] == HALTED)
    except (ValueError, LookupError, TypeError):
        return False


class Targets:
    """Recently used workers, by url."""

    def __init__(self) -> None:
        self._ssl_context = httpx.create_ssl_context()  # once, as it takes a while
        self._targets: dict[str, Target] = {}
        self._swept = time.monotonic()

    @asynccontextmanager
    async def use(self, url: str) -> AsyncIterator[Target]:
        """Returns a worker; raises `moving` if too many requests already wait for it."""
        target = self._targets.get(url)
        if target is None:
            target = self._targets[url] = Target(url, self._ssl_context)
        if target.waiting >= MOST_WAITING:
            raise errors.moving()
        target.used = time.monotonic()
        target.waiting += 1
        try:
            yield target
        finally:
            target.waiting -= 1
            await self._close_idle()

    async def _close_idle(self) -> None:
        now = time.monotonic()
        if now - self._swept < IDLE_SECONDS:
            return
        self._swept = now
        for url, target in list(self._targets.items()):
            if not target.waiting and now - target.used >= IDLE_SECONDS:
                del self._targets[url]
                await target.close()

    async def close(self) -> None:
        for target in self._targets.values():
            await target.close()


def new_client(ssl_context: ssl.SSLContext, connections: int) -> httpx.AsyncClient:
    """Makes a client without a proxy, which would get the callers' keys."""
    limits = httpx.Limits(max_connections=connections)
    return httpx.AsyncClient(verify=ssl_context, limits=limits, trust_env=False)
