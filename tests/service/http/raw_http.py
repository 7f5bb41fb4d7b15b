"""Connections on a loop in a thread of its own, and callers who write their HTTP by hand."""

import asyncio
import logging
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import suppress
from http.client import parse_headers
from typing import Any

import pytest

from driftbandits.service.errors import ApiError
from driftbandits.service.http import connection, connections
from driftbandits.service.http.connection import Connection
from driftbandits.service.http.connections import Connections
from driftbandits.service.http.protocol import Limits, Request, Response, error_response
from driftbandits.service.server import new_loop

PATIENCE = 20.0  # seconds
SOON = 0.15
MOST = 1_000_000  # bytes of a body
LARGE = 20_000_000  # bytes that no socket keeps
GET, ECHO = b"GET /%s HTTP/1.1\r\n\r\n", b"POST /echo HTTP/1.1\r\n"
CHUNKED = ECHO + b"Transfer-Encoding: chunked\r\n\r\n"
HALF = {
    "head": b"GET /pl",
    "body": ECHO + b"Content-Length: 9\r\n\r\nbody",
    "chunk": CHUNKED + b"9",
}


class Server:
    """Connections on a loop in a thread of its own, and what can be asked there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.loop, self.gate = loop, asyncio.Event()
        self.seen: list[str] = []
        self.logged: list[str] = []  # that should be
        self._thread = threading.Thread(target=loop.run_forever)
        self._thread.start()
        self.run(self._listen(limits))

    async def _listen(self, limits: Limits) -> None:
        self.connections = Connections(self._answer, limits)
        self._server = await self.loop.create_server(self.connections.new, "127.0.0.1", 0)
        self.address = self._server.sockets[0].getsockname()

    async def _answer(self, request: Request) -> Response:
        first, _, rest = request.path[1:].partition("/")
        self.seen.append(first)
        try:
            if first in ("wait", "late"):
                await self.gate.wait()
            if first in ("echo", "late"):
                await request.wait_for_body()
        except ApiError as error:
            return error_response(error)
        except asyncio.CancelledError:
            self.seen.append("cancelled")
            return Response(503)
        if first == "wrong":
            raise ValueError(first)
        if first == "parts":
            return Response(200, stream=self._parts(rest))
        text = request.header(b"say") or first
        return Response(200, bytes(LARGE) if first == "large" else request.body or text.encode())

    async def _parts(self, kind: str) -> AsyncGenerator[bytes, None]:
        try:
            yield b"one"
            yield b""
            if kind in ("wait", "quiet"):
                await self.gate.wait()
            if kind == "quiet":
                return
            if kind == "wrong":
                raise ValueError(kind)
            yield bytes(LARGE) if kind == "large" else b"two"
            self.seen.append("further")
            yield b"three"
        finally:
            self.seen.append("ended")

    def run(self, coroutine: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)

    def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, (self.seen, self.connections.open)
            time.sleep(0.005)

    def until_seen(self, *names: str) -> None:
        self.until(lambda: self.seen == list(names))

    def until_idle(self) -> None:
        self.until(lambda: not self.connections.open and not asyncio.all_tasks(self.loop))

    def open_gate(self) -> None:
        self.loop.call_soon_threadsafe(self.gate.set)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self._server.close)
        self.run(self.connections.close(0.0))
        self.until_idle()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def call(self, data: bytes) -> "Caller":
        return Caller(self.address, data)

    def only(self) -> Connection:
        self.until(lambda: self.connections.open)
        return next(iter(self.connections.open))


class Caller(socket.socket):
    def __init__(self, address: tuple[str, int], data: bytes) -> None:
        super().__init__()
        self.settimeout(PATIENCE)
        self.connect(address)
        self._came = self.makefile("rb")
        self.sendall(data)

    def close(self) -> None:
        self._came.close()
        super().close()

    def hang_up(self) -> None:
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def rest(self) -> bytes:
        return self._came.read()

    def count_rest(self) -> int:
        """Bytes until the end of the stream or a reset."""
        count = 0
        with suppress(ConnectionResetError):
            while part := self.recv(1_000_000):
                count += len(part)
        return count

    def head(self) -> tuple[int, Any]:
        line = self._came.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        return int(line.split()[1]), parse_headers(self._came)

    def answer(self) -> tuple[int, bytes]:
        status, headers = self.head()
        if headers["transfer-encoding"] != "chunked":
            return status, self._came.read(int(headers["content-length"]))
        body = b""
        while size := int(self._came.readline(), 16):
            body += self._came.read(size)
            self._came.readline()
        self._came.readline()
        return status, body


@pytest.fixture(params=[new_loop, asyncio.new_event_loop], ids=["usual", "asyncio"])
def loop(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoop:
    return request.param()


def running(loop: asyncio.AbstractEventLoop, limits: Limits, caplog: Any) -> Iterator[Server]:
    server = Server(loop, limits)
    try:
        yield server
        server.until_idle()
    finally:
        server.end()
    records = caplog.get_records("call") + caplog.get_records("teardown")
    assert [e.getMessage() for e in records if e.levelno > logging.INFO] == server.logged


@pytest.fixture
def server(loop: asyncio.AbstractEventLoop, caplog: Any) -> Iterator[Server]:
    yield from running(loop, Limits(MOST, 9, *[3 * PATIENCE] * 3), caplog)


@pytest.fixture
def hasty_server(
    loop: asyncio.AbstractEventLoop, caplog: Any, monkeypatch: Any
) -> Iterator[Server]:
    """Where nothing may take long."""
    monkeypatch.setattr(connections, "TICK_SECONDS", SOON / 5)
    for name in ("LINGER_SECONDS", "KEEP_ALIVE_SECONDS"):
        monkeypatch.setattr(connection, name, SOON)
    yield from running(loop, Limits(MOST, 9, SOON, SOON, SOON), caplog)
