"""Between HTTP and the service: bodies in, JSON out, limits, and the one shape of errors."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from driftbandits.check import InputError
from driftbandits.service import refusals
from driftbandits.service.gauges import Gauges
from driftbandits.service.refusals import Refusal, first_line

log = logging.getLogger("driftbandits.service")
encode = msgspec.json.Encoder().encode

JSON = "application/json"


class Limits(NamedTuple):
    """What one caller may ask for."""

    body_bytes: int = 4_000_000
    in_flight: int = 1_000  # requests at a time
    body_seconds: float = 10.0  # in which a body must have come
    answer_seconds: float = 60.0


USUAL = Limits()


def answer(status: int, content: Any = None, retry_after: int | None = None) -> Response:
    body = b"" if content is None else encode(content)
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else None
    return Response(body, status, headers, JSON if content is not None else None)


def refused(refusal: Refusal) -> Response:
    return answer(refusal.status, {"error": refusal.as_json()}, refusal.retry_after)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body, if it is not too long and does not come too slowly."""
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > limits.body_bytes:
        raise too_large(limits)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.body_bytes:
                    raise too_large(limits)
                parts.append(part)
    except TimeoutError:
        message = f"the body did not come within {limits.body_seconds:g} seconds"
        raise Refusal(408, "too_slow", message, "send it faster") from None
    return b"".join(parts)


def too_large(limits: Limits) -> Refusal:
    message = f"the body must have at most {limits.body_bytes} bytes"
    return Refusal(413, "too_large", message, "send smaller batches")


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise refusals.bad_value(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        remedy = "send one JSON object; /docs shows which"
        raise Refusal(400, "bad_json", f"the body is not JSON: {error}", remedy) from None


def guarded(
    handle: Callable[[Request], Awaitable[Response]],
    route: str,
    limits: Limits,
    gauges: Gauges,
    stopping: Callable[[], bool],
) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose refusals become answers, and that is not asked too much at a time."""

    async def safely(request: Request) -> Response:
        try:
            if stopping():
                raise refusals.stopping()
            if gauges.now_in_flight > limits.in_flight:
                raise refusals.too_busy("requests in flight")
            async with asyncio.timeout(limits.answer_seconds):
                return await handle(request)
        except Refusal as refusal:
            return refused(refusal)
        except InputError as error:
            return refused(refusals.bad_value(str(error)))
        except (OperationalError, InterfaceError) as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            return refused(refusals.no_database())
        except TimeoutError:
            return refused(refusals.too_busy("requests: no answer in time"))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:
            log.exception("%s failed", route)
            remedy = "see the service's log"
            return refused(Refusal(500, "internal", "the service failed", remedy))

    async def counted(request: Request) -> Response:
        begin = time.perf_counter()
        gauges.now_in_flight += 1
        try:
            response = await safely(request)
        finally:
            gauges.now_in_flight -= 1
        gauges.requests.labels(route, response.status_code).inc()
        gauges.seconds.observe(time.perf_counter() - begin)
        return response

    return counted
