"""Between HTTP and the service: requests, answers, limits, and the one shape of errors."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from sqlalchemy.exc import InterfaceError, OperationalError

from driftbandits.check import InputError
from driftbandits.service import refusals
from driftbandits.service.refusals import Refusal, first_line

log = logging.getLogger("driftbandits.service")
encode = msgspec.json.Encoder().encode

JSON = "application/json"


class Limits(NamedTuple):
    """What one caller may ask for."""

    body_bytes: int = 4_000_000
    in_flight: int = 1_000  # requests at a time
    head_seconds: float = 10.0  # in which the head of a request must have come
    body_seconds: float = 10.0  # in which a body must have come
    answer_seconds: float = 60.0


USUAL = Limits()


class Request:
    """What came in; the body may still be on its way."""

    __slots__ = (
        "_parts", "bandit", "body", "chunks", "complete", "failure", "headers", "keep_alive",
        "method", "on_wanted", "query_string", "raw_path", "size", "wanted",
    )  # fmt: skip

    def __init__(self, method: str, target: bytes, headers: dict[bytes, bytes]) -> None:
        self.method, self.headers = method, headers  # their names in small letters
        if not target.startswith(b"/"):  # with the host, as proxies are asked
            target = urlsplit(target)._replace(scheme=b"", netloc=b"").geturl() or b"/"
        self.raw_path, _, self.query_string = target.partition(b"?")
        self.bandit = ""  # named in the path
        self.keep_alive = self.chunks = True  # what the caller can do
        self.body, self.complete = b"", False
        self._parts: list[bytes] = []
        self.size = 0
        self.failure: Exception | None = None
        self.wanted: asyncio.Future[None] | None = None
        self.on_wanted: Callable[[Request], None] = lambda _: None

    @property
    def path(self) -> str:
        return unquote(self.raw_path.decode("latin-1"))

    @property
    def told_length(self) -> int:
        told = self.headers.get(b"content-length", b"")
        return int(told) if told.isdigit() else 0

    def header(self, name: bytes) -> str | None:
        found = self.headers.get(name)
        return None if found is None else found.decode("latin-1")

    def query(self, name: str, default: str) -> str:
        given = parse_qs(self.query_string.decode("latin-1"), keep_blank_values=True)
        return given.get(name, [default])[-1]

    # Its body

    def add(self, part: bytes) -> int:
        """Bytes that there are now."""
        self._parts.append(part)
        self.size += len(part)
        return self.size

    def arrived(self) -> None:
        self.body, self.complete = b"".join(self._parts), True
        self._parts.clear()
        self._tell()

    def fail(self, error: Exception) -> None:
        """It will not come."""
        self.failure = error
        self._tell()

    def _tell(self) -> None:
        if self.wanted is not None and not self.wanted.done():
            self.wanted.set_result(None)

    async def arrive(self) -> None:
        """Waits for the body."""
        if self.failure is None and not self.complete:
            self.wanted = asyncio.get_running_loop().create_future()
            self.on_wanted(self)
            await self.wanted
        if self.failure is not None:
            raise self.failure


class Answer(NamedTuple):
    """What goes out; `more` comes in place of the body, piece by piece."""

    status: int
    body: bytes = b""
    media: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    more: AsyncGenerator[bytes, None] | None = None


class Gone(Exception):  # noqa: N818
    """The caller did not wait."""


def answer(status: int, content: Any = None) -> Answer:
    return Answer(status) if content is None else Answer(status, encode(content), JSON)


def refused(refusal: Refusal) -> Answer:
    after = refusal.retry_after
    headers = () if after is None else (("retry-after", str(after)),)
    return Answer(refusal.status, encode({"error": refusal.as_json()}), JSON, headers)


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
