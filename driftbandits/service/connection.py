"""Connections over which requests come and answers go, straight on the parser of HTTP.

A server for all purposes would take a good part of the time of a decision; what is needed of one is
here: requests one after the other on a connection, bodies of any kind, answers in one write, and an
end to everything that takes too long. One look at all connections now and then takes the place of
timers for each request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from email.utils import formatdate
from typing import Any

import httptools

from driftbandits.service import wire
from driftbandits.service.http import Answer, Gone, Limits, Request, refused, too_large, too_slow
from driftbandits.service.refusals import Refusal

log = logging.getLogger("driftbandits.service")

LOOK = 0.25  # seconds between two looks at all connections
KEEP_ALIVE = 60.0  # seconds that a connection may wait for its next request
LINGER = 2.0  # seconds for which a caller that is cut off may read why
HEAD_BYTES = 65_536
BODY_BEFORE_ADMITTED = 65_536  # bytes, before it is known whether the caller may ask at all


class Connections:
    """All connections of a worker."""

    def __init__(self, answer: Callable[[Request], Awaitable[Answer]], limits: Limits) -> None:
        self.answer, self.limits = answer, limits
        self.open: set[Connection] = set()
        self.closing = False
        self.date = b""
        self._loop = asyncio.get_running_loop()
        self._look()

    def new(self) -> "Connection":
        return Connection(self, self._loop)

    def _look(self) -> None:
        self.date = b"date: %s\r\n" % formatdate(usegmt=True).encode()
        self._next = self._loop.call_later(LOOK, self._look)
        now = self._loop.time()
        for connection in [each for each in self.open if each.until < now]:
            connection.out_of_time()

    async def close(self, seconds: float) -> None:
        """Lets those that wait for an answer have it, and closes all."""
        self.closing = True
        end = self._loop.time() + seconds
        for connection in list(self.open):
            connection.close_when_idle()
        while self.open and self._loop.time() < end:
            await asyncio.sleep(0.02)
        self._next.cancel()
        for connection in list(self.open):
            connection.abort()


class Connection(asyncio.Protocol):
    """One caller. Requests that come before the last one is answered wait for their turn."""

    _transport: asyncio.Transport

    def __init__(self, all: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self._all, self._loop = all, loop
        self._parser = httptools.HttpRequestParser(self)
        self._coming: Request | None = None  # of which the head is there
        self._waiting: deque[Request] = deque()
        self._current: Request | None = None  # that is being answered
        self._task: asyncio.Task[None] | None = None  # which does it
        self._writable: asyncio.Future[None] | None = None  # while the caller reads too slowly
        self._deaf = False  # what comes is of no interest any more
        self._ended = False  # the caller says nothing more, but may listen
        self._in_head = True
        self._held = 0  # bytes that came since the parser told of anything: it may hold them all
        self._url = b""
        self._headers: dict[bytes, bytes] = {}

    # Coming and going

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._all.open.add(self)
        self.until = self._loop.time() + self._all.limits.head_seconds

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._deaf = True
        self.resume_writing()
        if self._coming is not None:
            self._coming.fail(Gone())
        if self._task is None:
            self._all.open.discard(self)
        else:  # which still has only so much time
            self._task.add_done_callback(lambda _: self._all.open.discard(self))

    def close_when_idle(self) -> None:
        if self._task is None:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()

    def out_of_time(self) -> None:
        """The request, its answer or the reader of the answer took too long."""
        request, now = self._current, self._loop.time()
        if request is not None:
            self.until = now + self._all.limits.answer_seconds
            if request.complete or request.failure is not None:
                assert self._task
                self._task.cancel()
            else:
                request.fail(too_slow(self._all.limits))
        elif self._transport.is_closing():  # but the caller does not read what is left
            self.abort()
        elif self._task is None:  # else it begins only now
            self.until = now + LINGER
            self._transport.close()

    # Reading

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._held += len(data)
        try:
            self._parser.feed_data(data)
            if self._held > HEAD_BYTES:
                self._refuse(head_too_large())
        except httptools.HttpParserUpgrade as error:
            self._read_without_upgrade(data[error.args[0] :])
        except httptools.HttpParserCallbackError as error:
            self._refuse(error.__context__)
        except httptools.HttpParserError as error:
            self._refuse(bad_http(str(error)))

    def eof_received(self) -> bool:
        """A caller may stop talking and still listen."""
        self._deaf = self._ended = True
        if self._coming is not None and not self._coming.complete:
            self._coming.fail(Gone())
        return self._task is not None

    def _refuse(self, error: BaseException | None) -> None:
        """What cannot be read; answers of earlier requests are on their way."""
        refusal = error if isinstance(error, Refusal) else bad_http(str(error))
        self._deaf = True
        if self._coming is not None and not self._coming.complete:
            self._coming.fail(refusal)
        elif self._task is None:
            answer = wire.whole(refused(refusal), self._all.date, keep=False, bodiless=False)
            self._transport.write(answer)
            self._part()

    def _read_without_upgrade(self, rest: bytes) -> None:
        """As we speak nothing else. The parser left out the body: it reads the request anew."""
        if self._coming is not None:  # CONNECT, which is never followed by HTTP
            self._deaf, self._coming.keep_alive = True, False
            return
        old, self._parser = self._parser, httptools.HttpRequestParser(self)
        lines = [b"%s %s HTTP/%s" % (old.get_method(), self._url, old.get_http_version().encode())]
        lines += [b"%s: %s" % each for each in self._headers.items() if each[0] != b"upgrade"]
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", {}
        self._coming, self._in_head = None, True
        if self._task is None:
            self.until = self._loop.time() + self._all.limits.head_seconds

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        parser = self._parser
        if b"upgrade" in self._headers and parser.should_upgrade():
            return
        request = Request(parser.get_method().decode("ascii"), self._url, self._headers)
        self._headers = {}  # for trailers, which nobody asked for
        request.chunks = parser.get_http_version() == "1.1"
        request.keep_alive = request.chunks and parser.should_keep_alive()
        request.on_wanted = self._body_is_wanted
        if request.told_length > self._all.limits.body_bytes:
            request.fail(too_large(self._all.limits))
        self._coming, self._in_head = request, False
        if self._task is None:
            self._task = self._loop.create_task(self._serve(request))
        else:
            self._waiting.append(request)
            self._transport.pause_reading()

    def on_body(self, body: bytes) -> None:
        request = self._coming
        assert request
        self._held = 0
        size = request.add(body)
        if size > self._all.limits.body_bytes:
            raise too_large(self._all.limits)
        if size > BODY_BEFORE_ADMITTED and not request.wanted:
            self._transport.pause_reading()

    def _body_is_wanted(self, request: Request) -> None:
        if request.chunks and request.headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(wire.CONTINUE)
        if not self._deaf:
            self._transport.resume_reading()

    def on_message_complete(self) -> None:
        self._held = 0
        if self._coming is None:  # it asks for an upgrade
            return
        self._coming.arrived()
        self.until = self._loop.time() + self._all.limits.answer_seconds

    # Answering

    async def _serve(self, request: Request) -> None:
        """This request, and those that came meanwhile."""
        keep = True
        while keep:
            self._current = request
            self.until = self._loop.time() + self._time_for(request)
            try:
                keep = await self._answer(request)
            except Gone:
                keep = False
            except asyncio.CancelledError:  # the caller does not read what it asked for
                self._transport.abort()
                keep = False
            except Exception:  # in the middle of an answer: the caller must see that it is cut
                if not self._transport.is_closing():  # else the caller did it
                    log.exception("an answer was cut off")
                self._transport.abort()
                keep = False
            if not self._waiting or self._transport.is_closing():
                break
            request = self._waiting.popleft()
        self._task = self._current = self._coming = None
        if self._ended or (keep and (self._deaf or self._all.closing)):
            self._transport.close()
        elif not keep:
            self._part()
        else:
            self._await_next()

    def _time_for(self, request: Request) -> float:
        limits = self._all.limits
        return limits.answer_seconds if request.complete else limits.body_seconds

    async def _answer(self, request: Request) -> bool:
        """Whether the connection may be used again."""
        given = await self._all.answer(request)
        self.until = self._loop.time() + self._all.limits.answer_seconds
        keep = request.keep_alive and request.complete and not self._all.closing
        bodiless = request.method == "HEAD" or given.status in (204, 304)
        if given.more is None:
            self._transport.write(wire.whole(given, self._all.date, keep=keep, bodiless=bodiless))
            if self._writable is not None:
                await self._writable
            return keep
        keep = keep and request.chunks
        head = wire.head(given, self._all.date, keep=keep, chunks=request.chunks)
        self._transport.write(head)
        if not bodiless:
            await self._write_parts(given.more, request.chunks)
        return keep

    def _await_next(self) -> None:
        seconds = self._all.limits.head_seconds if self._in_head else KEEP_ALIVE
        self.until = self._loop.time() + seconds
        self._transport.resume_reading()

    def _part(self) -> None:
        """The last answer is out. What the caller still sends is read, or it might not get it."""
        self._deaf = True
        if self._transport.is_closing():
            return
        with suppress(OSError):  # when the caller is gone
            self._transport.write_eof()
        self._transport.resume_reading()
        self.until = self._loop.time() + LINGER

    # Writing

    async def _write_parts(self, more: AsyncGenerator[bytes, None], chunks: bool) -> None:
        """Piece by piece, as fast as the caller reads."""
        async with aclosing(more) as parts:
            async for part in parts:
                if self._transport.is_closing():
                    raise Gone
                self.until = self._loop.time() + self._all.limits.answer_seconds
                if part:
                    self._transport.write(wire.chunk(part) if chunks else part)
                if self._writable is not None:
                    await self._writable
        if chunks:
            self._transport.write(wire.LAST_CHUNK)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None


def bad_http(what: str) -> Refusal:
    return Refusal(400, "bad_http", f"this is not HTTP: {what}", "send HTTP/1.1 requests")


def head_too_large() -> Refusal:
    message = f"the head of a request must have at most {HEAD_BYTES} bytes"
    return Refusal(431, "head_too_large", message, "send fewer or shorter headers")
