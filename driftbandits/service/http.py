"""Between HTTP and the service: requests in, answers out, limits, and the one shape of errors.

Straight on ASGI, as a framework's request and response would cost more than the decision.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from sqlalchemy.exc import InterfaceError, OperationalError

from driftbandits.check import InputError
from driftbandits.service import refusals
from driftbandits.service.refusals import Refusal, first_line

log = logging.getLogger("driftbandits.service")
encode = msgspec.json.Encoder().encode

JSON = "application/json"
PART_SECONDS = 60.0
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Limits(NamedTuple):
    """What one caller may ask for."""

    body_bytes: int = 4_000_000
    in_flight: int = 1_000  # requests at a time
    body_seconds: float = 10.0  # in which a body must have come
    answer_seconds: float = 60.0


USUAL = Limits()


class Request:
    """What came in."""

    __slots__ = ("bandit", "body", "method", "path", "scope")

    def __init__(self, scope: Message) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.bandit = ""  # named in the path
        self.body = b""

    def header(self, name: bytes) -> str | None:
        for key, value in self.scope["headers"]:
            if key == name:
                return value.decode("latin-1")
        return None

    def query(self, name: str, default: str) -> str:
        given = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return given.get(name, [default])[-1]


class Answer(NamedTuple):
    """What goes out; `more` follows the body, piece by piece."""

    status: int
    body: bytes = b""
    media: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    more: AsyncIterator[bytes] | None = None


class Gone(Exception):  # noqa: N818
    """The caller did not wait."""


def answer(status: int, content: Any = None) -> Answer:
    return Answer(status) if content is None else Answer(status, encode(content), JSON)


def refused(refusal: Refusal) -> Answer:
    after = refusal.retry_after
    headers = () if after is None else (("retry-after", str(after)),)
    return Answer(refusal.status, encode({"error": refusal.as_json()}), JSON, headers)


async def read_body(request: Request, receive: Receive, limits: Limits) -> bytes:
    """The body, if it is not too long."""
    told = request.header(b"content-length") or ""
    if told.isdigit() and int(told) > limits.body_bytes:
        raise too_large(limits)
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.body_bytes:
            raise too_large(limits)
    return body


def too_large(limits: Limits) -> Refusal:
    message = f"the body must have at most {limits.body_bytes} bytes"
    return Refusal(413, "too_large", message, "send smaller batches")


def too_slow(limits: Limits) -> Refusal:
    message = f"the body did not come within {limits.body_seconds:g} seconds"
    return Refusal(408, "too_slow", message, "send it faster")


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise refusals.bad_value(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        remedy = "send one JSON object; /docs shows which"
        raise Refusal(400, "bad_json", f"the body is not JSON: {error}", remedy) from None


def refusal_for(error: Exception, route: str) -> Refusal:
    """What a caller is told of an error that came out of a handler."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InputError):
        return refusals.bad_value(str(error))
    if isinstance(error, OperationalError | InterfaceError):
        log.warning("the database cannot be reached: %s", first_line(error))
        return refusals.no_database()
    if isinstance(error, TimeoutError):
        return refusals.too_busy("requests: no answer in time")
    log.error("%s failed", route, exc_info=error)
    return Refusal(500, "internal", "the service failed", "see the service's log")


async def send_answer(send: Send, given: Answer) -> None:
    status, body, media, headers, more = given
    lines = [(key.encode(), value.encode()) for key, value in headers]
    if media is not None:
        lines.append((b"content-type", media.encode()))
    if more is None:
        lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    if more is not None:
        async for part in more:
            async with asyncio.timeout(PART_SECONDS):  # for a client that does not read
                await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": body})
