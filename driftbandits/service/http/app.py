"""One worker of the service: finds the endpoint of a request, and gets its response."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from driftbandits.service import errors
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.worker import Worker
from driftbandits.service.errors import ApiError
from driftbandits.service.http.forwarding import Forwarder
from driftbandits.service.http.handlers import Handlers
from driftbandits.service.http.keyring import Keyring
from driftbandits.service.http.openapi import description
from driftbandits.service.http.protocol import (
    DEFAULT_LIMITS,
    ClientDisconnected,
    Limits,
    Request,
    Response,
    as_api_error,
    decode_body,
    error_response,
    json_response,
)
from driftbandits.service.http.routes import BANDIT, ROUTES, Route
from driftbandits.service.metrics import Metrics
from driftbandits.service.store.store import Store

CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
PAGE_HEADERS = (("content-security-policy", CONTENT_POLICY), ("x-content-type-options", "nosniff"))
ALWAYS_SERVED = ("healthy", "ready")  # or a supervisor would restart a worker that is only busy
READING = ("GET", "HEAD")  # the body of the second is left out when it is sent
BEFORE_BANDIT = BANDIT.removesuffix("{bandit}")
CACHED_PATHS, LONGEST_CACHED_PATH = 10_000, 1_000


class Endpoint(NamedTuple):
    """A route with what it takes to serve it."""

    route: Route
    handler: Callable[[Request, Any], Awaitable[Response]]
    decoder: msgspec.json.Decoder[Any] | None
    name: str  # in the metrics and the log


class Service:
    """One worker: its engine, and the HTTP API to it."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        *,
        open_to_all: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.metrics = Metrics()
        self.engine = Engine(store, worker, self.metrics)
        self.stopping = False
        self._keyring = Keyring(store, open_to_all)
        self.limits = limits
        self._forwarder = Forwarder(store, worker.name, limits.answer_seconds)
        self._handlers = Handlers(store, self.engine, self._forwarder)
        self._endpoints = endpoints(self._handlers)
        self._pages = pages()
        self._match_cached = lru_cache(CACHED_PATHS)(self._match)

    def start(self) -> None:
        """To be called on the event loop that serves requests."""
        self.engine.start()

    def tell_to_stop(self) -> None:
        """From now on no new work is accepted."""
        self.stopping = True
        self.engine.stop_adopting()

    async def stop(self) -> None:
        """To be called when all requests are answered."""
        self.tell_to_stop()
        self._handlers.stop()
        await asyncio.to_thread(self.engine.stop)
        await self._forwarder.close()

    async def respond(self, request: Request) -> Response:
        """Returns a response, even if it is cancelled because it takes too long."""
        begin = time.perf_counter()
        self.metrics.now_in_flight += 1
        try:
            name, response = await self._respond(request)
        finally:
            self.metrics.now_in_flight -= 1
        self.metrics.requests.count(name, response.status, time.perf_counter() - begin)
        return response

    async def _respond(self, request: Request) -> tuple[str, Response]:
        """Returns the name of the endpoint, and a response whatever happens."""
        page = self._pages.get(request.raw_path)
        if page is not None and request.method in READING:
            return request.path, page
        try:
            endpoint = self._find_endpoint(request)
        except ApiError as error:
            return "none", error_response(error)
        try:
            return endpoint.name, await self._handle(endpoint, request)
        except ClientDisconnected:
            raise
        except asyncio.CancelledError:
            return endpoint.name, error_response(errors.no_answer_in_time())
        except Exception as error:
            response = error_response(as_api_error(error, endpoint.name))
            # Its frames hold the error and the request's body: only a collection would free them.
            error.__traceback__ = None
            return endpoint.name, response

    def _find_endpoint(self, request: Request) -> Endpoint:
        is_short = len(request.raw_path) <= LONGEST_CACHED_PATH
        match = self._match_cached if is_short else self._match
        request.bandit, by_method = match(request.raw_path)
        if by_method is None:
            if request.raw_path in self._pages:
                raise errors.wrong_method(request.method, request.path, READING)
            raise errors.no_such_path(request.method, request.path)
        endpoint = by_method.get(request.method)
        if endpoint is None:
            raise errors.wrong_method(request.method, request.path, tuple(by_method))
        return endpoint

    def _match(self, raw_path: bytes) -> tuple[str, dict[str, Endpoint] | None]:
        """The bandit that a path names, and the endpoints there by method."""
        path, bandit = raw_path.decode("latin-1"), ""
        if path.startswith(BEFORE_BANDIT):
            name, slash, rest = path[len(BEFORE_BANDIT) :].partition("/")
            bandit = unquote(name)
            path = f"{BANDIT}{slash}{rest}" if name else path
        return bandit, self._endpoints.get(path)

    async def _handle(self, endpoint: Endpoint, request: Request) -> Response:
        handler = endpoint.route.handler
        if self.stopping and handler != "healthy":
            raise errors.stopping()
        if self.metrics.now_in_flight > self.limits.in_flight and handler not in ALWAYS_SERVED:
            raise errors.too_busy("too many requests in flight")
        self._keyring.check_origin(request.header(b"host"), request.header(b"origin"))
        role = endpoint.route.role
        if role:
            key = request.header(b"authorization")
            if not self._keyring.check_cached(key, role):
                await asyncio.to_thread(self._keyring.check, key, role)
        if endpoint.decoder is None:
            return await endpoint.handler(request, None)
        await request.wait_for_body()
        return await endpoint.handler(request, decode_body(endpoint.decoder, request.body))


def endpoints(handlers: Handlers) -> dict[str, dict[str, Endpoint]]:
    """Endpoints by path, then by method."""
    found: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        decoder: msgspec.json.Decoder[Any] | None
        decoder = None if route.body is None else msgspec.json.Decoder(route.body)
        name = f"{route.method} {route.path}"
        endpoint = Endpoint(route, getattr(handlers, route.handler), decoder, name)
        for method in READING if route.method == "GET" else (route.method,):
            found.setdefault(route.path, {})[method] = endpoint
    return found


def pages() -> dict[bytes, Response]:
    """The pages for people, and the OpenAPI description for programs."""
    here = resources.files("driftbandits.service.http") / "pages"
    html = partial(Response, 200, content_type="text/html; charset=utf-8", headers=PAGE_HEADERS)
    return {
        b"/": html(body=(here / "page.html").read_bytes()),
        b"/docs": html(body=(here / "docs.html").read_bytes()),
        b"/openapi.json": json_response(200, description()),
    }
