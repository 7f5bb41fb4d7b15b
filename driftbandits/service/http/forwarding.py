"""Passes requests on to the worker that owns the bandit."""

import asyncio
import time
from typing import Any

import httpx

from driftbandits.agents import checks
from driftbandits.service import errors
from driftbandits.service.errors import ApiError, OwnedElsewhere
from driftbandits.service.http.protocol import Request, Response
from driftbandits.service.http.targets import Targets
from driftbandits.service.store.store import Store

CACHE_SECONDS = 1.0  # until the store is asked again who owns a bandit
FORWARDED_HEADER = "driftbandits-forwarded"
PASSED_ON_HEADERS = ("authorization", "content-type")
PASSED_BACK_HEADERS = ("retry-after", "www-authenticate")
CACHE_SIZE = 10_000


class Forwarder:
    def __init__(self, store: Store, worker: str, answer_seconds: float) -> None:
        self._store, self._worker, self._answer_seconds = store, worker, answer_seconds
        # By bandit: when the store was asked, and the url of another worker that owns it.
        self._owners: dict[str, tuple[float, str | None]] = {}
        self._targets = Targets()

    async def look_for(self, bandit: str) -> None:
        """Raises OwnedElsewhere if another worker owns the bandit, or 404 if it does not exist."""
        found = self._owners.get(bandit)
        if not checks.is_name(bandit):
            raise errors.unknown_bandit(bandit)
        if found is None or time.monotonic() - found[0] > CACHE_SECONDS:
            row = await asyncio.to_thread(self._store.bandit, bandit)
            if row is None:
                raise errors.unknown_bandit(bandit)
            url = row.url if row.alive and row.owner != self._worker else None
            if len(self._owners) > CACHE_SIZE:
                self._owners.clear()
            found = self._owners[bandit] = time.monotonic(), url
        if found[1]:
            raise OwnedElsewhere(found[1])

    async def forward(self, request: Request, url: str) -> Response:
        path = request.raw_path.decode("latin-1")
        query = request.query_string.decode("latin-1")
        target = f"{path}?{query}" if query else path
        method = "GET" if request.method == "HEAD" else request.method  # which has a length
        response = await self._send(request, method, url, target)
        given = {key: response.headers.get(key) for key in PASSED_BACK_HEADERS}
        headers = tuple((key, value) for key, value in given.items() if value is not None)
        content_type = response.headers.get("content-type")
        return Response(response.status_code, response.content, content_type, headers)

    async def describe_all(self, request: Request, url: str) -> dict[str, Any]:
        """Asks another worker to describe its bandits; returns them by name, if it answers."""
        try:
            response = await self._send(request, "GET", url, "/v1/bandits")
        except ApiError:
            return {}
        found = response.json()["bandits"] if response.status_code == 200 else []
        return {bandit["name"]: bandit for bandit in found}

    async def _send(self, request: Request, method: str, url: str, path: str) -> httpx.Response:
        if request.header(FORWARDED_HEADER.encode()):  # by a worker that thinks we own the bandit
            raise errors.moving()
        given = {key: request.header(key.encode()) for key in PASSED_ON_HEADERS}
        headers = {key: value for key, value in given.items() if value}
        headers[FORWARDED_HEADER] = self._worker
        try:
            async with self._targets.use(url) as target:
                return await target.request(
                    method,
                    path,
                    content=request.body,
                    headers=headers,
                    timeout=self._answer_seconds,
                )
        except httpx.HTTPError:
            self._owners.clear()
            raise errors.moving() from None

    async def close(self) -> None:
        await self._targets.close()
