"""Requests for a bandit that another worker looks after go there, and its answers come back."""

import asyncio
import time
from typing import Any
from urllib.parse import quote

import httpx

from driftbandits.agents import checks
from driftbandits.service import refusals
from driftbandits.service.http import Answer, Request
from driftbandits.service.refusals import Elsewhere, Refusal
from driftbandits.service.store import Store

KNOWN_FOR = 1.0  # seconds until the store is asked again where a bandit is
FORWARDED = "driftbandits-forwarded"
PASSED_ON = ("authorization", "content-type")
MOST_KNOWN = 10_000


class Forwarder:
    def __init__(self, store: Store, worker: str) -> None:
        self._store, self._worker = store, worker
        self._known: dict[str, tuple[float, str | None]] = {}  # url of another worker, if any
        self._client = httpx.AsyncClient(timeout=30.0)

    async def look_for(self, bandit: str) -> None:
        """Raises Elsewhere where another worker has the bandit, or 404 where nobody has it."""
        found = self._known.get(bandit)
        if not checks.is_name(bandit):
            raise refusals.unknown_bandit(bandit)
        if found is None or time.monotonic() - found[0] > KNOWN_FOR:
            row = await asyncio.to_thread(self._store.bandit, bandit)
            if row is None:
                raise refusals.unknown_bandit(bandit)
            url = row.url if row.alive and row.owner != self._worker else None
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            found = self._known[bandit] = time.monotonic(), url
        if found[1]:
            raise Elsewhere(found[1])

    async def forward(self, request: Request, url: str) -> Answer:
        path = request.raw_path.decode("latin-1")
        query = request.query_string.decode("latin-1")
        target = f"{url}{path}?{query}" if query else f"{url}{path}"
        there = await self._send(request, request.method, target, request.body)
        kept = tuple((key, there.headers[key]) for key in ("retry-after",) if key in there.headers)
        return Answer(there.status_code, there.content, there.headers.get("content-type"), kept)

    async def describe(self, request: Request, url: str, bandit: str) -> Any:
        """None where the other worker cannot tell."""
        try:
            where = f"{url}/v1/bandits/{quote(bandit, safe='')}"
            there = await self._send(request, "GET", where, b"")
        except Refusal:
            return None
        return there.json() if there.status_code == 200 else None

    async def _send(self, request: Request, method: str, url: str, body: bytes) -> httpx.Response:
        if request.header(
            FORWARDED.encode()
        ):  # the other one thinks that we have it: it is on its way
            raise refusals.moving()
        given = {key: request.header(key.encode()) for key in PASSED_ON}
        headers = {key: value for key, value in given.items() if value}
        try:
            return await self._client.request(
                method, url, content=body, headers={**headers, FORWARDED: self._worker}
            )
        except httpx.HTTPError:
            self._known.clear()
            raise refusals.moving() from None

    async def close(self) -> None:
        await self._client.aclose()
