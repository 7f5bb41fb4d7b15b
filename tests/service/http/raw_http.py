"""A stand-in for the service, served as ours is, and callers who write their HTTP by hand."""

import asyncio
import logging
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import nullcontext, suppress
from http.client import parse_headers
from typing import Any

import pytest

from driftbandits.service.errors import ApiError
from driftbandits.service.http import asgi
from driftbandits.service.http.asgi import AsgiApp
from driftbandits.service.http.connection import Connection
from driftbandits.service.http.protocol import Limits, Request, Response, error_response
from driftbandits.service.server import WorkerServer, listen, new_loop, uvicorn_config

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
PATIENT = Limits(MOST, 9, *[3 * PATIENCE] * 3)
LOOPS = {"usual": new_loop, "asyncio": asyncio.new_event_loop}

Respond = Callable[[Request], Awaitable[Response]]


class PatientConnection(Connection):
    head_seconds = answer_seconds = PATIENT.head_seconds
    check_seconds = SOON / 5


class HastyConnection(Connection):
    """Where nothing may take long."""

    head_seconds = linger_seconds = answer_seconds = SOON
    check_seconds = SOON / 5


class StandIn:
    """What the application needs of a service."""

    def __init__(self, respond: Respond, limits: Limits = PATIENT) -> None:
        self.respond, self.limits = respond, limits

    def start(self) -> None:
        pass

    def tell_to_stop(self) -> None:
        pass

    async def stop(self) -> None:
        pass


class Listening:
    """A stand-in on a port, with the server and the settings of `driftbandits serve`."""

    def __init__(
        self, service: StandIn, kind: type[Connection] = PatientConnection, idle: float = 60
    ) -> None:
        self._listener = listen("127.0.0.1", 0)
        self.address = self._listener.getsockname()
        self.app = AsgiApp(lambda: nullcontext(service), only_loopback=False)  # type: ignore
        config = uvicorn_config(self.app)
        config.http, config.timeout_keep_alive = kind, idle  # type: ignore[assignment]
        self._server = WorkerServer(config)
        self.state = self._server.server_state

    async def serve(self) -> None:
        async with self.app:
            await self._server.serve([self._listener])

    def stop(self, grace: float = 0.0) -> None:
        """To be called on its loop."""
        self.app.tell_to_stop(grace)
        self._server.should_exit = True


class Server:
    """It listens on a loop in a thread of its own; and what can be asked there."""

    def __init__(
        self, make_loop: Callable[[], asyncio.AbstractEventLoop], limits: Limits = PATIENT,
        **options: Any,
    ) -> None:  # fmt: skip
        self.loop = make_loop()
        self.listening = Listening(StandIn(self._answer, limits), **options)
        self.begin()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def begin(self) -> None:
        """As if nothing had been asked."""
        self.gate = asyncio.Event()
        self.seen: list[str] = []
        self.logged: list[str] = []  # that should be

    def _run(self) -> None:
        self.loop.run_until_complete(self.listening.serve())

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
        if first == "parts":
            return Response(200, stream=self._parts(rest))
        text = request.header(b"say") or first
        return Response(200, bytes(LARGE) if first == "large" else request.body or text.encode())

    async def _parts(self, kind: str) -> AsyncGenerator[bytes, None]:
        seen = self.seen
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
            seen.append("further")
            yield b"three"
        finally:
            seen.append("ended")

    def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, (self.seen, self.listening.state.connections)
            time.sleep(0.005)

    def until_seen(self, *names: str) -> None:
        self.until(lambda: self.seen == list(names))

    def until_idle(self) -> None:
        state = self.listening.state
        self.until(lambda: not state.connections and not state.tasks)

    def open_gate(self) -> None:
        self.loop.call_soon_threadsafe(self.gate.set)

    def stop(self, grace: float = 0.0) -> None:
        self.loop.call_soon_threadsafe(self.listening.stop, grace)

    def end(self) -> None:
        self.stop()
        self._thread.join()
        self.loop.close()

    def call(self, data: bytes) -> "Caller":
        return Caller(self.listening.address, data)

    def only(self) -> Any:
        """The connection, if there is one."""
        self.until(lambda: self.listening.state.connections)
        return next(iter(self.listening.state.connections))


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


@pytest.fixture(scope="module", params=LOOPS)
def patient(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(LOOPS[request.param])
    yield server
    server.end()


@pytest.fixture(scope="module", params=LOOPS)
def hasty(request: pytest.FixtureRequest) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asgi, "TICK_SECONDS", SOON / 5)
        limits = Limits(MOST, 9, SOON, SOON, SOON)
        server = Server(LOOPS[request.param], limits, kind=HastyConnection, idle=SOON)
        yield server
        server.end()


def asked(server: Server, caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    """After each test no connection is left, no task, and nothing was logged that should not be."""
    server.begin()
    yield server
    server.until_idle()
    records = caplog.get_records("call") + caplog.get_records("teardown")
    assert [e.getMessage() for e in records if e.levelno > logging.INFO] == server.logged


@pytest.fixture
def server(patient: Server, caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    yield from asked(patient, caplog)


@pytest.fixture
def hasty_server(hasty: Server, caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    yield from asked(hasty, caplog)
