"""The service as an ASGI application: every message by hand, on a stand-in for the service."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.http.asgi import AsgiApp
from driftbandits.service.http.protocol import (
    ClientDisconnected,
    Limits,
    Request,
    Response,
    error_response,
)

MOST = 1000  # bytes of a body
SOON = 0.05  # seconds
PATIENCE = 20.0
GONE = {"type": "http.disconnect"}


class StandIn:
    """Answers by path, and notes what it saw."""

    def __init__(self, **limits: float) -> None:
        self.limits = Limits(body_bytes=MOST)._replace(**limits)  # type: ignore[arg-type]
        self.life: list[str] = []
        self.bodies: list[bytes | Exception] = []
        self.parts = 0
        self.closed = False

    def start(self) -> None:
        self.life.append("started")

    async def stop(self) -> None:
        self.life.append("stopped")

    async def respond(self, request: Request) -> Response:
        if request.path == "/body":
            return await self._echo(request)
        if request.path == "/never":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return error_response(errors.too_busy("no answer in time"))
        if request.path == "/stream":
            return Response(200, content_type="text/csv", stream=self._stream(request))
        if request.path == "/nothing":
            return Response(204)
        seen = f"{request.method} {request.raw_path.decode()} {request.query_string.decode()}"
        return Response(200, seen.encode(), "text/plain", (("x-seen", "ä"),))

    async def _echo(self, request: Request) -> Response:
        try:
            await request.wait_for_body()
        except (ApiError, ClientDisconnected) as error:
            self.bodies.append(error)
            if isinstance(error, ClientDisconnected):
                raise
            return error_response(error)
        self.bodies.append(request.body)
        return Response(200, request.body)

    async def _stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        try:
            while self.parts < int(request.query("parts", "3")):
                await asyncio.sleep(0)
                self.parts += 1
                yield b"part %d\n" % self.parts
            if request.query("fails", ""):
                raise OSError("the disk is gone")
        finally:
            self.closed = True


class Exchange:
    """A server's side of one request: what it gives the application, and what it gets."""

    def __init__(self, *messages: dict[str, Any], after: Callable[[int], bool] | None = None):
        self.given, self.got = list(messages), []
        self.asked = 0
        self._after = after or (lambda _: False)  # whether sending waits forever after so many
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        if self.given:
            return self.given.pop(0)
        await self.left.wait()
        return GONE

    async def send(self, message: Any) -> None:
        self.got.append(message)
        if self._after(len(self.got)):
            await asyncio.Event().wait()

    @property
    def status(self) -> int:
        return self.got[0]["status"]

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.got[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.got[1:])


def scope_of(method: str, path: str, **rest: Any) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http", "method": method, "path": path, "query_string": query.encode(),
        "headers": [], "server": ("127.0.0.1", 8000), **rest,
    }  # fmt: skip


def app_of(service: StandIn, only_loopback: bool = False) -> AsgiApp:
    @contextmanager
    def opened() -> Iterator[Any]:
        service.life.append("opened")
        yield service
        service.life.append("closed")

    return AsgiApp(opened, only_loopback=only_loopback)


def exchange(
    service: StandIn, scope: dict[str, Any], *messages: dict[str, Any], only_loopback: bool = False
) -> Exchange:
    async def run() -> Exchange:
        one = Exchange(*messages)
        async with asyncio.timeout(PATIENCE), app_of(service, only_loopback) as app:
            await app(scope, one.receive, one.send)
        return one

    return asyncio.run(run())


def part(body: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_request_and_its_response(method: str) -> None:
    got = exchange(StandIn(), scope_of(method, "/v1/bandits/a b/log?format=csv"))
    seen = f"{method} /v1/bandits/a%20b/log format=csv".encode()
    assert got.status == 200
    assert got.headers == {
        b"content-type": b"text/plain",
        b"content-length": b"%d" % len(seen),
        b"x-seen": b"\xe4",
    }
    assert got.body == (b"" if method == "HEAD" else seen)
    assert got.asked == 0  # nobody wanted the body


def test_no_content_has_neither_body_nor_length() -> None:
    got = exchange(StandIn(), scope_of("DELETE", "/nothing"))
    assert (got.status, got.headers, got.body) == (204, {}, b"")


@pytest.mark.parametrize(
    ("path", "prefix", "inside"),
    [
        ("/bandits/v1/x", "/bandits", "/v1/x"),
        ("/v1/x", "/bandits", "/v1/x"),  # an application that has taken the prefix off
        ("/banditsandmore/x", "/bandits", "/banditsandmore/x"),
        ("/a b/ä%/x", "/a b", "/%C3%A4%25/x"),
        ("", "", "/"),
    ],
)
def test_a_mounted_application_sees_the_path_below(path: str, prefix: str, inside: str) -> None:
    got = exchange(StandIn(), scope_of("GET", path, root_path=prefix))
    assert got.body.decode() == f"GET {inside} "


def test_the_folder_of_a_mounted_application_ends_in_a_slash() -> None:
    got = exchange(StandIn(), scope_of("GET", "/my bandits", root_path="/my bandits"))
    assert (got.status, got.headers[b"location"]) == (307, b"/my%20bandits/")


def test_a_body_in_parts() -> None:
    service = StandIn()
    got = exchange(service, scope_of("POST", "/body"), part(b"one "), part(b"two", more=False))
    assert (got.status, got.body) == (200, b"one two")


def test_a_body_that_is_announced_as_too_large_is_not_read() -> None:
    length = [(b"content-length", b"%d" % (MOST + 1))]
    got = exchange(StandIn(), scope_of("POST", "/body", headers=length), part(b"x" * 99))
    assert (got.status, got.asked) == (413, 0)
    assert b"too_large" in got.body


def test_a_body_that_grows_too_large_is_not_read_to_its_end() -> None:
    got = exchange(StandIn(), scope_of("POST", "/body"), *[part(b"x" * 400)] * 9)
    assert (got.status, got.asked) == (413, 3)


def test_a_body_that_does_not_come() -> None:
    got = exchange(StandIn(body_seconds=SOON), scope_of("POST", "/body"), part(b"half"))
    assert got.status == 408
    assert b"too_slow" in got.body


def test_a_caller_who_leaves_before_its_body_is_complete() -> None:
    service = StandIn()
    got = exchange(service, scope_of("POST", "/body"), part(b"half"), GONE)
    assert got.got == []
    assert [type(error) for error in service.bodies] == [ClientDisconnected]


def test_no_answer_in_time() -> None:
    got = exchange(StandIn(answer_seconds=SOON), scope_of("GET", "/never"))
    assert got.status == 429


def test_a_request_that_the_server_cancels_is_not_answered() -> None:
    async def run() -> None:
        one = Exchange()
        async with app_of(StandIn()) as app:
            task = asyncio.create_task(app(scope_of("GET", "/never"), one.receive, one.send))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert one.got == []

    asyncio.run(run())


def test_a_stream_goes_out_part_by_part() -> None:
    service = StandIn()
    got = exchange(service, scope_of("GET", "/stream"), part(b"", more=False))
    assert got.headers == {b"content-type": b"text/csv"}
    assert [message.get("more_body", False) for message in got.got[1:]] == [True] * 3 + [False]
    assert got.body == b"part 1\npart 2\npart 3\n"
    assert service.closed


def test_a_stream_has_a_head_without_its_parts() -> None:
    service = StandIn()
    got = exchange(service, scope_of("HEAD", "/stream"))
    assert (got.status, got.body, len(got.got), service.parts) == (200, b"", 2, 0)


def test_a_stream_stops_when_the_caller_leaves() -> None:
    service = StandIn()

    async def run() -> Exchange:
        one = Exchange()

        async def send(message: Any) -> None:
            await one.send(message)
            if len(one.got) == 5:
                one.left.set()

        async with asyncio.timeout(PATIENCE), app_of(service) as app:
            await app(scope_of("GET", "/stream?parts=1000000"), one.receive, send)
        return one

    got = asyncio.run(run())
    assert service.closed
    assert service.parts < 20
    assert got.got[-1]["more_body"]  # it has no end


@pytest.mark.parametrize("path", ["/stream", "/plain"])
def test_a_caller_who_reads_nothing_is_cut_off(path: str, caplog: pytest.LogCaptureFixture) -> None:
    service = StandIn(answer_seconds=SOON)

    async def run() -> Exchange:
        one = Exchange(after=lambda sent: sent == 2)
        async with asyncio.timeout(PATIENCE), app_of(service) as app:
            await app(scope_of("GET", path), one.receive, one.send)
        return one

    with caplog.at_level(logging.WARNING):
        got = asyncio.run(run())
    assert service.closed == (path == "/stream")
    assert len(got.got) == 2
    assert "its caller did not read it" in caplog.text


def test_a_stream_that_breaks_is_not_ended() -> None:
    """The server cuts it off, and its caller sees that something is missing."""
    with pytest.raises(OSError, match="the disk is gone"):
        exchange(StandIn(), scope_of("GET", "/stream?fails=1"))


@pytest.mark.parametrize("server", [("10.0.0.7", 80), ("/run/socket", None), None])
def test_without_keys_only_loopback_is_served(server: Any) -> None:
    scope = scope_of("GET", "/", server=server)
    got = exchange(StandIn(), scope, only_loopback=True)
    assert got.status == 403
    assert exchange(StandIn(), scope).status == 200
    assert exchange(StandIn(), scope_of("GET", "/"), only_loopback=True).status == 200


def test_it_lives_as_long_as_the_server() -> None:
    async def run() -> None:
        service = StandIn()
        app = app_of(service)
        server = Exchange({"type": "lifespan.startup"})
        life = asyncio.create_task(app({"type": "lifespan"}, server.receive, server.send))
        while not server.got:
            await asyncio.sleep(0)
        assert server.got == [{"type": "lifespan.startup.complete"}]
        assert service.life == ["opened", "started"]
        with pytest.raises(RuntimeError, match="running already"):
            await app.__aenter__()
        server.left.set()
        await life
        assert server.got[1:] == [{"type": "lifespan.shutdown.complete"}]
        assert service.life == ["opened", "started", "stopped", "closed"]
        with pytest.raises(RuntimeError, match="`async with`"):
            await app(scope_of("GET", "/"), server.receive, server.send)

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_other_protocols_are_refused() -> None:
    got = exchange(StandIn(), {"type": "websocket"}, {"type": "websocket.connect"})
    assert got.got == [{"type": "websocket.close"}]
    with pytest.raises(NotImplementedError, match="got 'gopher'"):
        exchange(StandIn(), {"type": "gopher"})
