"""Requests, responses and their limits: what lies between HTTP and the service."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from driftbandits.check import InputError
from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.store.outage import SilentDatabaseError

log = logging.getLogger("driftbandits.service")
encode = msgspec.json.Encoder().encode

JSON = "application/json"


class Limits(NamedTuple):
    """How much one caller may ask for."""

    body_bytes: int = 4_000_000
    in_flight: int = 1_000  # concurrent requests
    head_seconds: float = 10.0  # for the request line and headers to arrive
    body_seconds: float = 10.0  # for the body to arrive
    answer_seconds: float = 60.0


DEFAULT_LIMITS = Limits()


class ClientDisconnected(Exception):  # noqa: N818  # as in starlette: not an error of ours
    """The client left before its request was complete, or before it was answered."""


class Request:
    """A request whose head has arrived; the body may still be on its way."""

    __slots__ = (
        "_body_parts", "bandit", "body", "body_size", "body_waiter", "complete", "failure",
        "headers", "keep_alive", "method", "on_body_wanted", "query_string", "raw_path",
        "understands_chunks",
    )  # fmt: skip

    def __init__(self, method: str, target: bytes, headers: dict[bytes, bytes]) -> None:
        self.method, self.headers = method, headers  # header names are lower case
        if not target.startswith(b"/"):  # absolute form, as sent to proxies
            target = urlsplit(target)._replace(scheme=b"", netloc=b"").geturl() or b"/"
        self.raw_path, _, self.query_string = target.partition(b"?")
        self.bandit = ""  # named in the path
        self.keep_alive = self.understands_chunks = True  # set by the reader
        self.body, self.complete = b"", False
        self.body_size = 0  # bytes so far
        self._body_parts: list[bytes] = []
        self.failure: Exception | None = None  # why the body will never be complete
        self.body_waiter: asyncio.Future[None] | None = None
        self.on_body_wanted: Callable[[Request], None] = lambda _: None

    @property
    def path(self) -> str:
        return unquote(self.raw_path.decode("latin-1"))

    @property
    def content_length(self) -> int:
        """As announced; 0 if it was not."""
        announced = self.headers.get(b"content-length", b"")
        return int(announced) if announced.isdigit() else 0

    def header(self, name: bytes) -> str | None:
        found = self.headers.get(name)
        return None if found is None else found.decode("latin-1")

    def query(self, name: str, default: str) -> str:
        given = parse_qs(self.query_string.decode("latin-1"), keep_blank_values=True)
        return given.get(name, [default])[-1]

    # The body, filled in by the connection and awaited by the service

    def add_to_body(self, part: bytes) -> int:
        """Returns the number of bytes so far."""
        self._body_parts.append(part)
        self.body_size += len(part)
        return self.body_size

    def finish_body(self) -> None:
        self.body, self.complete = b"".join(self._body_parts), True
        self._body_parts.clear()
        self._wake_waiter()

    def fail(self, error: Exception) -> None:
        """The body will not be complete: `wait_for_body` raises the error."""
        self.failure = error
        self._wake_waiter()

    def _wake_waiter(self) -> None:
        if self.body_waiter is not None and not self.body_waiter.done():
            self.body_waiter.set_result(None)

    async def wait_for_body(self) -> None:
        if self.failure is None and not self.complete:
            self.body_waiter = asyncio.get_running_loop().create_future()
            self.on_body_wanted(self)
            await self.body_waiter
        if self.failure is not None:
            raise self.failure


class Stream(Protocol):
    """A body in parts, made as they are sent; it is closed in any case, also before the first."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Response(NamedTuple):
    """What is sent back; `stream` replaces the body and is sent piece by piece."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    stream: Stream | None = None


def json_response(status: int, content: Any = None) -> Response:
    return Response(status) if content is None else Response(status, encode(content), JSON)


def error_response(error: ApiError) -> Response:
    after = error.retry_after
    wait = () if after is None else (("retry-after", str(after)),)
    headers = (*wait, *error.headers)
    return Response(error.status, encode({"error": error.as_json()}), JSON, headers)


def decode_body(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise errors.bad_value(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.bad_json(str(error)) from None


def as_api_error(error: Exception, route: str) -> ApiError:
    """The error to return when a handler raises; unexpected ones are only logged."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, InputError):
        return errors.bad_value(str(error))
    if isinstance(error, OperationalError | InterfaceError | NoConnectionError):
        if not isinstance(error, SilentDatabaseError):  # for every caller, and logged already
            log.warning("the database cannot be reached: %s", first_line(error))
        return errors.no_database()
    if isinstance(error, TimeoutError):
        return errors.no_answer_in_time()
    log.error("%s failed", route, exc_info=error)
    return errors.internal()
