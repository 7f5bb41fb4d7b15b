"""The service as an ASGI application, for any ASGI server or mounted in another application."""

import asyncio
import logging
import math
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, ExitStack, aclosing
from typing import Any, Self
from urllib.parse import quote

from driftbandits.check import InputError
from driftbandits.service import errors
from driftbandits.service.http.app import Service
from driftbandits.service.http.keyring import LOOPBACK
from driftbandits.service.http.protocol import (
    ABORT,
    WHOLE_BODY,
    WHOLE_RESPONSE,
    ClientDisconnected,
    CutOffError,
    Limits,
    Request,
    Response,
    Stream,
    error_response,
    headers_of,
)

log = logging.getLogger("driftbandits.service")

TICK_SECONDS = 0.25  # between two checks of all deadlines

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

NO_EXTENSIONS: dict[str, Any] = {}
NOT_RUNNING = (
    "the application must be running, but it was not started: the server must support ASGI's "
    "lifespan, or the application it is mounted in must use `async with` in its own"
)


class AsgiRequest(Request):
    """A request whose body is read only when the service waits for it."""

    __slots__ = (
        "_deadline_passed", "_limits", "_loop", "_receive", "_task", "_whole_body", "caller_left",
        "deadline",
    )  # fmt: skip

    def __init__(
        self, scope: Scope, receive: Receive, limits: Limits, loop: asyncio.AbstractEventLoop
    ) -> None:
        headers, query = dict(scope["headers"]), scope.get("query_string", b"")
        super().__init__(scope["method"], raw_path_of(scope), headers, query)
        self._receive, self._limits, self._loop = receive, limits, loop
        self._whole_body = scope.get("extensions", NO_EXTENSIONS).get(WHOLE_BODY)
        self._task = asyncio.current_task(loop)
        self._deadline_passed = self.caller_left = False
        self.allow_answer()

    async def wait_for_body(self) -> None:
        body = self._whole_body and self._whole_body()
        if body is None:
            await self._wait_for_body()
        elif len(body) > self._limits.body_bytes:
            raise errors.too_large(self._limits.body_bytes)
        else:
            self.body = body

    async def _wait_for_body(self) -> None:
        announced = self.headers.get(b"content-length", b"")
        if announced.isdigit() and int(announced) > self._limits.body_bytes:
            raise errors.too_large(self._limits.body_bytes)
        self.deadline = self._loop.time() + self._limits.body_seconds
        try:
            await self._read_body()
        except asyncio.CancelledError:
            if not self.is_overdue():
                raise
            raise errors.too_slow(self._limits.body_seconds) from None
        self.allow_answer()

    async def _read_body(self) -> None:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.body_bytes:
                raise errors.too_large(self._limits.body_bytes)
            more = message.get("more_body", False)
        self.body = b"".join(parts)

    async def wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass  # what is left of the body
        self.caller_left = True

    # Deadlines, checked from outside, as a timer for each request would be slower

    def allow_answer(self) -> None:
        self.deadline = self._loop.time() + self._limits.answer_seconds

    def deadline_passed(self) -> None:
        assert self._task
        self.deadline, self._deadline_passed = math.inf, True
        self._task.cancel()

    def is_overdue(self) -> bool:
        """Whether its deadline, and not the server, has cancelled it; can be asked once."""
        overdue, self._deadline_passed = self._deadline_passed, False
        if overdue:
            assert self._task
            self._task.uncancel()
        return overdue

    def check_cancelled(self) -> None:
        """Raises if the server has cancelled the request; after a deadline there is a response."""
        assert self._task
        if self._deadline_passed:
            self.is_overdue()
        if self._task.cancelling():
            raise asyncio.CancelledError


class AsgiApp:
    """Starts with the lifespan of the server that runs it, or with `async with` where mounted."""

    def __init__(
        self, open_service: Callable[[], AbstractContextManager[Service]], *, only_loopback: bool
    ) -> None:
        self._open_service, self._only_loopback = open_service, only_loopback
        self._service: Service | None = None
        self._opened = ExitStack()
        self._answering: set[AsgiRequest] = set()
        self._end = math.inf  # when everything must be answered

    async def __aenter__(self) -> Self:
        if self._service is not None:
            raise RuntimeError("the application must be started once, but it is running already")
        with ExitStack() as stack:
            service = stack.enter_context(self._open_service())
            service.start()
            self._opened = stack.pop_all()
        self._service, self._loop = service, asyncio.get_running_loop()
        self._tick()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._service
        try:
            await self._service.stop()
        finally:
            self._service = None
            self._next_tick.cancel()
            self._opened.close()

    def tell_to_stop(self, grace_seconds: float) -> None:
        """From now on no new work is accepted, and what was accepted must be done in time."""
        if self._service is not None:
            self._service.tell_to_stop()
        self._end = min(self._end, asyncio.get_running_loop().time() + grace_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._serve_other(scope, receive, send)
        service = self._service
        if service is None:
            raise RuntimeError(NOT_RUNNING)
        request = AsgiRequest(scope, receive, service.limits, self._loop)
        self._answering.add(request)
        try:
            response = self._answer_itself(scope)
            if response is None:
                response = await service.respond(request)
                request.check_cancelled()
            request.allow_answer()
            if not send_whole(response, request, scope):
                await send_response(response, request, send)
        except ClientDisconnected:
            return None
        except asyncio.CancelledError:
            if not request.is_overdue():
                raise
            if not request.caller_left:
                log.warning("an answer was cut off, as its caller did not read it")
                abort(scope)
        except CutOffError as cut:
            if not abort(scope):
                raise  # any other server ends the connection for an exception
            log.warning("an answer was cut off: %s", cut)
            await request.wait_for_disconnect()
        finally:
            self._answering.discard(request)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            raise NotImplementedError(f"ASGI scope must be http or lifespan, got {scope['type']!r}")

    async def _live(self, receive: Receive, send: Send) -> None:
        """Runs from the server's start to its end."""
        await receive()
        try:
            await self.__aenter__()
        except Exception as error:
            message = str(error) if isinstance(error, InputError) else traceback.format_exc()
            await send({"type": "lifespan.startup.failed", "message": message})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.__aexit__()
        await send({"type": "lifespan.shutdown.complete"})

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_tick = loop.call_later(TICK_SECONDS, self._tick)
        latest = loop.time() if loop.time() < self._end else math.inf
        for request in [each for each in self._answering if each.deadline < latest]:
            request.deadline_passed()

    def _answer_itself(self, scope: Scope) -> Response | None:
        """Answers what depends on the server; None if the service should answer."""
        if self._only_loopback:
            host = (scope.get("server") or (None,))[0]
            if host not in LOOPBACK:
                return error_response(errors.foreign_host(host, LOOPBACK))
        prefix = scope.get("root_path", "")
        if prefix and scope["path"] == prefix:  # the page's links are relative to its folder
            return Response(307, headers=(("location", f"{quote(prefix)}/"),))
        return None


def raw_path_of(scope: Scope) -> bytes:
    """The path below the one where the application is mounted, as it is sent over HTTP."""
    path, prefix = scope["path"], scope.get("root_path", "")
    if not prefix and scope.get("raw_path"):
        return scope["raw_path"]
    inside = prefix and path.startswith(f"{prefix}/")
    return quote(path[len(prefix) :] if inside else path).encode() or b"/"


def send_whole(response: Response, request: AsgiRequest, scope: Scope) -> bool:
    """Sends a response in one call if the server can; returns whether it did."""
    whole = scope.get("extensions", NO_EXTENSIONS).get(WHOLE_RESPONSE)
    if whole is None or response.stream is not None or request.method == "HEAD":
        return False
    return whole(response.status, headers_of(response), response.body)


def abort(scope: Scope) -> bool:
    """Ends the connection if the server can; returns whether it can."""
    end = scope.get("extensions", NO_EXTENSIONS).get(ABORT)
    if end is None:
        return False
    end()
    return True


async def send_response(response: Response, request: AsgiRequest, send: Send) -> None:
    with_body = request.method != "HEAD" and response.status not in (204, 304)
    if response.stream is None:
        await send(start_of(response))
        await send({"type": "http.response.body", "body": response.body if with_body else b""})
        return
    async with aclosing(response.stream) as stream:
        await send(start_of(response))
        if not with_body or await send_parts(stream, request, send):
            await send({"type": "http.response.body"})


def start_of(response: Response) -> Message:
    headers = list(headers_of(response))  # middleware of others may add some
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def send_parts(stream: Stream, request: AsgiRequest, send: Send) -> bool:
    """Sends parts as fast as the caller reads; returns whether the caller stayed."""
    waiting = asyncio.create_task(request.wait_for_disconnect())
    try:
        async for part in stream:
            if request.caller_left:
                return False
            request.allow_answer()
            await send({"type": "http.response.body", "body": part, "more_body": True})
    finally:
        waiting.cancel()
    return True
