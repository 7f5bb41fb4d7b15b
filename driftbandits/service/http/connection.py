"""One connection of uvicorn, with the limits that uvicorn leaves to a proxy in front of it."""

import asyncio
from contextlib import suppress
from functools import lru_cache
from math import inf
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.http.protocol import (
    ABORT,
    DEFAULT_LIMITS,
    WHOLE_BODY,
    WHOLE_RESPONSE,
    Headers,
    error_response,
    headers_of,
)

MAX_HEAD_BYTES = 65_536
MAX_PIPELINED = 1_000  # requests, which take more memory than the bytes they come from


@lru_cache(1000)
def lines_of(headers: Headers) -> bytes:
    return b"".join(b"%s: %s\r\n" % header for header in headers)


class Connection(HttpToolsProtocol):
    """Limits the time and the size of heads, and the time that closing takes.

    It also does otherwise what is wrong in uvicorn 0.54: that drops all that follows a request for
    an upgrade, takes trailers for headers, answers malformed input before earlier requests, gives
    no answer to who has stopped sending, and works on for who has left with a request waiting.
    """

    head_seconds = DEFAULT_LIMITS.head_seconds
    answer_seconds = DEFAULT_LIMITS.answer_seconds
    linger_seconds = 2.0  # for a caller to read the last answer, or to send what nobody wants
    check_seconds = 1.0  # between two looks at the clock, as a timer for each request would be slow

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unparsed = 0  # bytes since the parser's last call: it may buffer all of them
        self._answering: Any = None  # the last request that was begun; others may wait behind it
        self._discards_input = self._has_ended = False
        self._awaited: object = None
        self._extensions = {
            WHOLE_BODY: self._take_body,
            WHOLE_RESPONSE: self._send_whole,
            ABORT: self._abort,
        }

    # Life of the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._awaited_since = self.loop.time()
        self._next_check = self.loop.call_later(self.check_seconds, self._check_time)

    def connection_lost(self, exc: Exception | None) -> None:
        self._next_check.cancel()
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """A caller may stop sending and still read."""
        if self._is_idle() or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expects_head(self) -> bool:
        """Whether the first request is to come, or a later one has begun but not its body."""
        return self.cycle is None or self.scope is not self.cycle.scope

    # Time

    def _check_time(self) -> None:
        self._next_check = self.loop.call_later(self.check_seconds, self._check_time)
        now = self.loop.time()
        awaited, seconds = self._wait_for()
        if awaited is not self._awaited:
            self._awaited, self._awaited_since = awaited, now
        elif now - self._awaited_since > seconds:
            self.transport.abort() if self.transport.is_closing() else self.transport.close()

    def _wait_for(self) -> tuple[object, float]:
        """Sets what the caller must do next, and within how many seconds."""
        is_over = self._has_ended or self.transport.is_closing()
        if (is_over or self._is_idle()) and self.transport.get_write_buffer_size():
            return "read", self.answer_seconds
        if is_over:
            return "end", self.linger_seconds
        if not self._is_idle():
            return "answer", inf  # the application has limits for it
        if self._expects_head():
            return self.scope, self.head_seconds
        return self.cycle, self.linger_seconds if self.cycle.more_body else self.timeout_keep_alive

    # Reading

    def data_received(self, data: bytes) -> None:
        rest: bytes | memoryview = data
        try:
            while rest and not self._discards_input:
                rest = self._parse(rest)
        except ApiError as error:
            self._refuse(error)

    def _parse(self, data: bytes | memoryview) -> bytes | memoryview:
        """Parses data; returns what is left after a request for an upgrade."""
        self._unparsed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade()
            return memoryview(data)[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            raise errors.bad_http(str(error.__context__ or error)) from None
        if self._unparsed > MAX_HEAD_BYTES:
            raise errors.head_too_large(MAX_HEAD_BYTES)
        return b""

    def _read_without_upgrade(self) -> None:
        """Reads on without the upgrade, as we support none.

        The parser would drop the body, so a new one reads the head again.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise errors.bad_http("this is not a proxy")
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self._parse(b"\r\n".join([*lines, b"", b""]))

    def _should_upgrade(self) -> bool:
        return True  # so that uvicorn does not begin to answer: `_read_without_upgrade` does

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/") and httptools.parse_url(self.url).path is None:
            raise ValueError("the target has no path")
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            raise ValueError(f"at most {MAX_PIPELINED} requests may wait for earlier ones")
        if not self.parser.should_upgrade():
            self.headers = []  # trailers go here and are ignored

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        super().on_message_complete()

    def _refuse(self, error: ApiError) -> None:
        """Reads no further; earlier requests are still answered."""
        self._discards_input = True
        cycle, is_idle = self.cycle, self._is_idle()
        in_body = not self._expects_head() and cycle.more_body
        if is_idle and in_body:  # of a request that is answered
            self._end()
        elif is_idle:
            self._end_with(error)
        elif in_body and cycle is self._answering and not cycle.response_started:
            cycle.disconnected = True
            cycle.message_event.set()
            self._end_with(error)
        else:
            cycle.keep_alive = False

    # Answering

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        cycle.scope["extensions"] = self._extensions
        if cycle.scope["http_version"] == "1.0":
            cycle.waiting_for_100_continue = False  # which it does not know
        super()._start_asgi_task(cycle, app)

    def _take_body(self) -> bytes | None:
        """Returns the body, or None if not all of it has arrived."""
        cycle = self._answering
        if cycle.more_body or cycle.disconnected:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        self.flow.resume_reading()  # or nobody would notice that the caller leaves
        return body

    def _abort(self) -> None:
        self.transport.abort()

    def _send_whole(self, status: int, headers: Headers, body: bytes) -> bool:
        """Sends a response in one write: a second system call would cost as much as the rest.

        Returns False if the caller does not read, so that uvicorn must wait for it.
        """
        cycle = self._answering
        if self.flow.write_paused or cycle.disconnected:
            return False
        cycle.response_started = cycle.response_complete = True
        self._write(status, headers, body, closes=not cycle.keep_alive)
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return True

    def _write(self, status: int, headers: Headers, body: bytes, *, closes: bool) -> None:
        always = lines_of(tuple(self.server_state.default_headers))
        end = b"connection: close\r\n\r\n" if closes else b"\r\n"
        self.transport.write(b"".join((STATUS_LINE[status], always, lines_of(headers), end, body)))

    def on_response_complete(self) -> None:
        """Does what uvicorn does, but without a timer for each request."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())

    def _end_with(self, error: ApiError) -> None:
        response = error_response(error)
        self._write(response.status, headers_of(response), response.body, closes=True)
        self._end()

    def _end(self) -> None:
        """Ends a connection slowly: closing at once could lose the last answer."""
        self._has_ended = True
        with suppress(OSError):  # the caller has left
            self.transport.write_eof()
        self.flow.resume_reading()
