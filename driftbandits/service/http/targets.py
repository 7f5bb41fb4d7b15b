"""Connections to other workers: some for each, so that no worker can take those to another."""

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from driftbandits.service import errors

CONNECTIONS = 32  # to one worker
MOST_WAITING = 256  # requests to one worker; more would only fill this one
IDLE_SECONDS = 60.0  # after which the connections to a worker are closed


class Target:
    """Another worker."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS)
        # Without a proxy, whatever the environment says: it would get the callers' keys.
        self.client = httpx.AsyncClient(verify=ssl_context, limits=limits, trust_env=False)
        self.waiting = 0  # requests
        self.used = time.monotonic()


class Targets:
    """Those that were used lately, by url."""

    def __init__(self) -> None:
        self._ssl_context = httpx.create_ssl_context()  # once, as it takes a while
        self._targets: dict[str, Target] = {}
        self._swept = time.monotonic()

    @asynccontextmanager
    async def use(self, url: str) -> AsyncIterator[httpx.AsyncClient]:
        """Raises `moving` where too many requests wait for that worker already."""
        target = self._targets.get(url)
        if target is None:
            target = self._targets[url] = Target(self._ssl_context)
        if target.waiting >= MOST_WAITING:
            raise errors.moving()
        target.used = time.monotonic()
        target.waiting += 1
        try:
            yield target.client
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
                await target.client.aclose()

    async def close(self) -> None:
        for target in self._targets.values():
            await target.client.aclose()
