"""All connections of a worker: one clock that enforces their deadlines, and a graceful close."""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate

from driftbandits.service.http.connection import Connection, SharedState
from driftbandits.service.http.protocol import Limits, Request, Response

TICK_SECONDS = 0.25  # between two checks of all deadlines


class Connections:
    def __init__(self, respond: Callable[[Request], Awaitable[Response]], limits: Limits) -> None:
        self._shared = SharedState(respond, limits)
        self._loop = asyncio.get_running_loop()
        self._tick()

    @property
    def open(self) -> set[Connection]:
        return self._shared.open

    def new(self) -> Connection:
        return Connection(self._shared, self._loop)

    def _tick(self) -> None:
        self._shared.date = b"date: %s\r\n" % formatdate(usegmt=True).encode()
        self._next_tick = self._loop.call_later(TICK_SECONDS, self._tick)
        now = self._loop.time()
        for connection in [each for each in self.open if each.deadline < now]:
            connection.deadline_passed()

    async def close(self, seconds: float) -> None:
        """Waits for answers that are on their way, for so long, and closes all connections."""
        self._shared.closing = True
        end = self._loop.time() + seconds
        for connection in list(self.open):
            connection.close_if_idle()
        while self.open and self._loop.time() < end:
            await asyncio.sleep(0.02)
        self._next_tick.cancel()
        for connection in list(self.open):
            connection.abort()
