"""Bytes of one connection become requests, one after the other."""

from typing import Protocol

import httptools

from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.http.protocol import Limits, Request

MAX_HEAD_BYTES = 65_536
MAX_UNREQUESTED_BODY_BYTES = 65_536  # read before it is known whether the caller may ask at all


class RequestListener(Protocol):
    """Called as a request arrives, in this order."""

    def request_started(self) -> None:
        """The first bytes have arrived."""

    def head_received(self, request: Request) -> None:
        """The headers have arrived; the body follows."""

    def body_outgrew_buffer(self) -> None:
        """The body is larger than what is read before the service waits for it."""

    def request_received(self) -> None:
        """All of it has arrived."""


class RequestReader:
    """Parses HTTP/1.1; its `on_...` methods are called by httptools."""

    def __init__(self, listener: RequestListener, limits: Limits) -> None:
        self._listener, self._limits = listener, limits
        self._parser = httptools.HttpRequestParser(self)
        self.current: Request | None = None  # the last one whose head has arrived
        self.in_head = True
        self.stopped = False
        self._unparsed = 0  # bytes since the parser's last call: it may buffer all of them
        self._url = b""
        self._headers: dict[bytes, bytes] = {}

    def stop(self) -> None:
        """Discards all further input."""
        self.stopped = True

    def fail_incomplete(self, error: Exception) -> bool:
        """Fails the current request if some of it is missing; returns whether it was."""
        if self.current is None or self.current.complete:
            return False
        self.current.fail(error)
        return True

    def feed(self, data: bytes | memoryview) -> None:
        """Raises ApiError if the input is not HTTP or too large."""
        while not self.stopped:
            rest = self._parse(data)
            if rest is None:
                return
            self._begin_without_upgrade()
            data = rest

    def _parse(self, data: bytes | memoryview) -> memoryview | None:
        """What is left after a request for an upgrade, None without one."""
        self._unparsed += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            return memoryview(data)[error.args[0] :]
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            raise cause if isinstance(cause, ApiError) else errors.bad_http(str(cause)) from None
        except httptools.HttpParserError as error:
            raise errors.bad_http(str(error)) from None
        if self._unparsed > MAX_HEAD_BYTES:
            raise errors.head_too_large(MAX_HEAD_BYTES)
        return None

    def _begin_without_upgrade(self) -> None:
        """Ignores the upgrade, as we support none.

        The parser would drop the body, so a new one reads the head again.
        """
        if self.current is not None:  # CONNECT, which HTTP never follows
            self.stop()
            self.current.keep_alive = False
            return
        old, self._parser = self._parser, httptools.HttpRequestParser(self)
        lines = [b"%s %s HTTP/%s" % (old.get_method(), self._url, old.get_http_version().encode())]
        lines += [b"%s: %s" % each for each in self._headers.items() if each[0] != b"upgrade"]
        self._parse(b"\r\n".join([*lines, b"", b""]))

    # Called by the parser

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", {}
        self.current, self.in_head = None, True
        self._listener.request_started()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        parser = self._parser
        if b"upgrade" in self._headers and parser.should_upgrade():
            return  # the request is read again without it
        request = Request(parser.get_method().decode("ascii"), self._url, self._headers)
        self._headers = {}  # trailers go here and are ignored
        request.understands_chunks = parser.get_http_version() == "1.1"
        request.keep_alive = request.understands_chunks and parser.should_keep_alive()
        if request.content_length > self._limits.body_bytes:
            request.fail(errors.too_large(self._limits.body_bytes))
        self.current, self.in_head = request, False
        self._listener.head_received(request)

    def on_body(self, body: bytes) -> None:
        request = self.current
        assert request
        self._unparsed = 0
        size = request.add_to_body(body)
        if size > self._limits.body_bytes:
            raise errors.too_large(self._limits.body_bytes)
        if size > MAX_UNREQUESTED_BODY_BYTES and not request.body_waiter:
            self._listener.body_outgrew_buffer()

    def on_message_complete(self) -> None:
        self._unparsed = 0
        if self.current is not None:  # else it asked for an upgrade, and is read again
            self.current.finish_body()
            self._listener.request_received()
