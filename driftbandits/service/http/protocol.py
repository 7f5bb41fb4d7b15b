"""Requests, responses and their limits: what lies between HTTP and the service."""

import logging
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote

import msgspec
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from driftbandits.check import InputError, shortened
from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.store.outage import SilentDatabaseError

log = logging.getLogger("driftbandits.service")
encode = msgspec.json.Encoder().encode

JSON = "application/json"
Headers = tuple[tuple[bytes, bytes], ...]


class Limits(NamedTuple):
    """How much one caller may ask for."""

    body_bytes: int = 4_000_000
    in_flight: int = 1_000  # concurrent requests
    head_seconds: float = 10.0  # for the request line and headers to arrive
    body_seconds: float = 10.0  # for the body to arrive
    answer_seconds: float = 60.0


DEFAULT_LIMITS = Limits()
# Extensions of ASGI that `Connection` has: the body of a request that is all here; sending status,
# headers and body at once, if it can; ending the connection.
WHOLE_BODY = "driftbandits.whole_body"
WHOLE_RESPONSE = "driftbandits.whole_response"
ABORT = "driftbandits.abort"


class ClientDisconnected(Exception):  # noqa: N818  # as in starlette: not an error of ours
    """The client left before its request was complete, or before it was answered."""


class CutOffError(Exception):
    """A streamed answer cannot be completed. Its connection ends, so that the caller knows."""


class Request:
    """A request whose head has arrived; the body may still be on its way."""

    __slots__ = ("bandit", "body", "headers", "method", "query_string", "raw_path")

    def __init__(
        self,
        method: str,
        raw_path: bytes,
        headers: dict[bytes, bytes],
        query_string: bytes = b"",
        body: bytes = b"",
    ) -> None:
        self.method, self.headers, self.body = method, headers, body  # header names: lower case
        self.raw_path, self.query_string = raw_path, query_string
        self.bandit = ""  # named in the path

    @property
    def path(self) -> str:
        return unquote(self.raw_path.decode("latin-1"))

    def header(self, name: bytes) -> str | None:
        found = self.headers.get(name)
        return None if found is None else found.decode("latin-1")

    def query(self, name: str, default: str) -> str:
        given = parse_qs(self.query_string.decode("latin-1"), keep_blank_values=True)
        return given.get(name, [default])[-1]

    async def wait_for_body(self) -> None:
        """Waits until `body` is complete; raises if it never will be."""


class Stream(Protocol):
    """A body in parts, made as they are sent; it is always closed."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Response(NamedTuple):
    """What is sent back; `stream` replaces the body and is sent piece by piece."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    stream: Stream | None = None


def headers_of(response: Response) -> Headers:
    """Headers as they are sent; a stream has no length."""
    has_length = response.stream is None and response.status != 204
    length = len(response.body) if has_length else None
    return encoded_headers(response.headers, response.content_type, length)


@lru_cache(1000)
def encoded_headers(
    headers: tuple[tuple[str, str], ...], content_type: str | None, length: int | None
) -> Headers:
    found = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers]
    if content_type is not None:
        found.append((b"content-type", content_type.encode()))
    if length is not None:
        found.append((b"content-length", b"%d" % length))
    return tuple(found)


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
        raise errors.bad_value(shortened(str(error))) from None
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
