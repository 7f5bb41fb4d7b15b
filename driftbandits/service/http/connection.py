"""One connection, directly on an HTTP parser: requests are answered one after the other.

A general-purpose server would take a good part of the time of a decision. This one does what the
service needs: keep-alive and pipelining, bodies of any kind, most responses in one write, and a
time limit on everything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.http import wire
from driftbandits.service.http.protocol import (
    ClientDisconnected,
    Limits,
    Request,
    Response,
    Stream,
    error_response,
)
from driftbandits.service.http.request_reader import RequestReader

log = logging.getLogger("driftbandits.service")

KEEP_ALIVE_SECONDS = 60.0  # that a connection may be idle between requests
LINGER_SECONDS = 2.0  # for a caller to read the last response before the connection is cut


class SharedState:
    """What all connections of a worker have in common."""

    def __init__(self, respond: Callable[[Request], Awaitable[Response]], limits: Limits) -> None:
        self.respond, self.limits = respond, limits
        self.open: set[Connection] = set()
        self.closing = False
        self.date = b""  # the header


class Connection(asyncio.Protocol):
    """Pipelined requests wait until the one before them is answered."""

    _transport: asyncio.Transport
    deadline: float  # by the loop's clock; checked from outside, as a timer each would be slower

    def __init__(self, shared: SharedState, loop: asyncio.AbstractEventLoop) -> None:
        self._shared, self._limits, self._loop = shared, shared.limits, loop
        self._reader = RequestReader(self, shared.limits)
        self._pipelined: deque[Request] = deque()
        self._answering: Request | None = None
        self._task: asyncio.Task[None] | None = None  # answers requests
        self._writable: asyncio.Future[None] | None = None  # while the caller reads too slowly
        self._input_ended = False  # the caller sends no more, but may still read

    # Life of the connection

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._shared.open.add(self)
        self._allow(self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._reader.stop()
        self.resume_writing()
        if self._reader.current is not None:
            self._reader.current.fail(ClientDisconnected())
        if self._task is None:
            self._shared.open.discard(self)
        else:  # the task still has a deadline
            self._task.add_done_callback(lambda _: self._shared.open.discard(self))

    def close_if_idle(self) -> None:
        if self._task is None:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()

    def deadline_passed(self) -> None:
        """The request, its answer or the reader of the answer took too long."""
        request = self._answering
        if request is not None:
            self._allow(self._limits.answer_seconds)
            if request.complete or request.failure is not None:
                assert self._task
                self._task.cancel()
            else:
                request.fail(errors.too_slow(self._limits.body_seconds))
        elif self._transport.is_closing():  # but the caller does not read what is left
            self.abort()
        elif self._task is None:  # otherwise it is only just beginning
            self._allow(LINGER_SECONDS)
            self._transport.close()

    def _allow(self, seconds: float) -> None:
        self.deadline = self._loop.time() + seconds

    # Reading

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except ApiError as error:
            self._reject_input(error)

    def eof_received(self) -> bool:
        """A caller may stop sending and still read."""
        self._reader.stop()
        self._input_ended = True
        self._reader.fail_incomplete(ClientDisconnected())
        return self._task is not None

    def _reject_input(self, error: ApiError) -> None:
        """Reads no further; earlier requests are still answered."""
        self._reader.stop()
        if not self._reader.fail_incomplete(error) and self._task is None:
            self._write(error_response(error), keep_alive=False)
            self._close_after_linger()

    def request_started(self) -> None:
        if self._task is None:
            self._allow(self._limits.head_seconds)

    def head_received(self, request: Request) -> None:
        request.on_body_wanted = self._read_body
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all(request))
        else:
            self._pipelined.append(request)
            self._transport.pause_reading()

    def body_outgrew_buffer(self) -> None:
        self._transport.pause_reading()

    def _read_body(self, request: Request) -> None:
        expects = request.headers.get(b"expect", b"").lower()
        if request.understands_chunks and expects == b"100-continue":
            self._transport.write(wire.CONTINUE)
        if not self._reader.stopped:
            self._transport.resume_reading()

    def request_received(self) -> None:
        if self._answering is self._reader.current:  # else its time begins with its turn
            self._allow(self._limits.answer_seconds)

    # Answering

    async def _answer_all(self, request: Request) -> None:
        """Answers this request and those that were pipelined behind it."""
        keep_alive = True
        while keep_alive:
            self._answering = request
            limits = self._limits
            self._allow(limits.answer_seconds if request.complete else limits.body_seconds)
            keep_alive = await self._answer_or_abort(request)
            if not self._pipelined or self._transport.is_closing():
                break
            request = self._pipelined.popleft()
        self._task = self._answering = self._reader.current = None
        if self._input_ended or (keep_alive and (self._reader.stopped or self._shared.closing)):
            self._transport.close()
        elif not keep_alive:
            self._close_after_linger()
        else:
            self._await_next()

    async def _answer_or_abort(self, request: Request) -> bool:
        """Whether the connection may be used again."""
        try:
            return await self._answer(request)
        except ClientDisconnected:
            return False
        except asyncio.CancelledError:  # the caller does not read what it asked for
            self._transport.abort()
        except Exception:  # in the middle of a response: the caller must see that it is cut
            if not self._transport.is_closing():  # otherwise the caller is the reason
                log.exception("an answer was cut off")
            self._transport.abort()
        return False

    async def _answer(self, request: Request) -> bool:
        """Whether the connection may be used again."""
        response = await self._shared.respond(request)
        keep_alive = request.keep_alive and request.complete and not self._shared.closing
        with_body = request.method != "HEAD" and response.status not in (204, 304)
        if response.stream is None:
            self._write(response, keep_alive=keep_alive, with_body=with_body)
            if self._writable is not None:
                self._allow(self._limits.answer_seconds)
                await self._writable
            return keep_alive
        chunked = request.understands_chunks
        keep_alive = keep_alive and chunked
        date = self._shared.date
        head = wire.stream_head(response, date, keep_alive=keep_alive, chunked=chunked)
        self._transport.write(head)
        async with aclosing(response.stream) as parts:
            if with_body:
                await self._write_parts(parts, chunked)
        return keep_alive

    def _await_next(self) -> None:
        self._allow(self._limits.head_seconds if self._reader.in_head else KEEP_ALIVE_SECONDS)
        self._transport.resume_reading()

    def _close_after_linger(self) -> None:
        """Discards what the caller still sends: closing at once could lose the last response."""
        self._reader.stop()
        if self._transport.is_closing():
            return
        with suppress(OSError):  # the caller has left
            self._transport.write_eof()
        self._transport.resume_reading()
        self._allow(LINGER_SECONDS)

    # Writing

    def _write(self, response: Response, *, keep_alive: bool, with_body: bool = True) -> None:
        date = self._shared.date
        data = wire.response_bytes(response, date, keep_alive=keep_alive, with_body=with_body)
        self._transport.write(data)

    async def _write_parts(self, parts: Stream, chunked: bool) -> None:
        """Piece by piece, as fast as the caller reads."""
        async for part in parts:
            if self._transport.is_closing():
                raise ClientDisconnected
            self._allow(self._limits.answer_seconds)
            if part:
                self._transport.write(wire.chunk(part) if chunked else part)
            if self._writable is not None:
                await self._writable
        if chunked:
            self._transport.write(wire.LAST_CHUNK)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
