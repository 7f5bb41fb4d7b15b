"""The service, put together from its parts: a request becomes an answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from driftbandits.service import refusals
from driftbandits.service.caretaker import Worker
from driftbandits.service.engine import Engine
from driftbandits.service.forwarding import Forwarder
from driftbandits.service.gauges import Gauges
from driftbandits.service.handlers import Handlers
from driftbandits.service.http import (
    USUAL,
    Answer,
    Gone,
    Limits,
    Request,
    answer,
    decoded,
    refusal_for,
    refused,
)
from driftbandits.service.keyring import Keyring
from driftbandits.service.openapi import description
from driftbandits.service.refusals import Refusal
from driftbandits.service.routes import ONE, ROUTES, Route
from driftbandits.service.store import Store

CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (("content-security-policy", CONTENT_POLICY), ("x-content-type-options", "nosniff"))
ALWAYS = ("healthy", "ready")  # for supervisors, who would end a worker that is only busy
BANDITS = ONE.removesuffix("{bandit}")
PATHS_KNOWN, LONGEST_PATH = 10_000, 1_000  # those that are remembered


class Place(NamedTuple):
    """A route at work."""

    route: Route
    handler: Callable[[Request, Any], Awaitable[Answer]]
    decoder: msgspec.json.Decoder[Any] | None
    name: str


class Service:
    """One worker: its engine, and what is asked of it over HTTP."""

    def __init__(
        self,
        store: Store,
        worker: str,
        url: str,
        *,
        open_to_all: bool = False,
        ttl: float = 3.0,
        limits: Limits = USUAL,
    ) -> None:
        self.gauges = Gauges()
        self.engine = Engine(store, Worker(worker, url, ttl), self.gauges)
        self.stopping = False
        self._keyring = Keyring(store, open_to_all)
        self.limits = limits
        self._forwarder = Forwarder(store, worker)
        handlers = Handlers(store, self.engine, self._forwarder)
        self._places: dict[str, dict[str, Place]] = {}  # by path, by method
        for route in ROUTES:
            decoder = decoder_of(route)
            name = f"{route.method} {route.path}"
            place = Place(route, getattr(handlers, route.handler), decoder, name)
            self._places.setdefault(route.path, {})[route.method] = place
        self._pages = pages()
        self._at = lru_cache(PATHS_KNOWN)(self._look_up)

    def start(self) -> None:
        """On the event loop that requests come on."""
        self.engine.start()

    def tell_to_stop(self) -> None:
        """From now on nothing new is begun."""
        self.stopping = True
        self.engine.take_in_no_more()

    async def stop(self) -> None:
        """When all requests are answered."""
        self.tell_to_stop()
        await asyncio.to_thread(self.engine.stop)
        await self._forwarder.close()

    async def answer(self, request: Request) -> Answer:
        """To be cancelled when it takes too long: that, too, is answered."""
        begin = time.perf_counter()
        self.gauges.now_in_flight += 1
        try:
            name, given = await self._answer(request)
        finally:
            self.gauges.now_in_flight -= 1
        self.gauges.requests.count(name, given.status, time.perf_counter() - begin)
        return given

    async def _answer(self, request: Request) -> tuple[str, Answer]:
        """The name of the route and its answer, whatever happens."""
        page = self._pages.get(request.raw_path)
        if page is not None and request.method in ("GET", "HEAD"):
            return request.path, page
        try:
            place = self._find(request)
        except Refusal as refusal:
            return "none", refused(refusal)
        try:
            return place.name, await self._handle(place, request)
        except Gone:
            raise
        except asyncio.CancelledError:
            return place.name, refused(refusals.too_busy("requests: no answer in time"))
        except Exception as error:
            return place.name, refused(refusal_for(error, place.name))

    def _find(self, request: Request) -> Place:
        at = self._at if len(request.raw_path) <= LONGEST_PATH else self._look_up
        request.bandit, places = at(request.raw_path)
        if places is None:
            raise no_such_path(404, "no_such_path", request)
        place = places.get(request.method)
        if place is None:
            raise no_such_path(405, "wrong_method", request)
        return place

    def _look_up(self, raw_path: bytes) -> tuple[str, dict[str, Place] | None]:
        """The bandit that a path names, and what can be done there, by method."""
        path, bandit = raw_path.decode("latin-1"), ""
        if path.startswith(BANDITS):
            name, slash, rest = path[len(BANDITS) :].partition("/")
            bandit = unquote(name)
            path = f"{ONE}{slash}{rest}" if name else path
        return bandit, self._places.get(path)

    async def _handle(self, place: Place, request: Request) -> Answer:
        handler = place.route.handler
        if self.stopping and handler != "healthy":
            raise refusals.stopping()
        if self.gauges.now_in_flight > self.limits.in_flight and handler not in ALWAYS:
            raise refusals.too_busy("requests in flight")
        self._keyring.check_origin(request.header(b"host"), request.header(b"origin"))
        if place.route.role:
            await self._check_key(request, place.route.role)
        if place.decoder is None:
            return await place.handler(request, None)
        await request.arrive()
        return await place.handler(request, decoded(place.decoder, request.body))

    async def _check_key(self, request: Request, role: str) -> None:
        header = request.header(b"authorization")
        if not self._keyring.check_cached(header, role):
            await asyncio.to_thread(self._keyring.check, header, role)


def decoder_of(route: Route) -> msgspec.json.Decoder[Any] | None:
    return None if route.body is None else msgspec.json.Decoder(route.body)


def pages() -> dict[bytes, Answer]:
    """The pages for people, and the description for programs."""
    here = resources.files("driftbandits.service")
    html = partial(Answer, 200, media="text/html; charset=utf-8", headers=HEADERS)
    return {
        b"/": html(body=(here / "page.html").read_bytes()),
        b"/docs": html(body=(here / "docs.html").read_bytes()),
        b"/openapi.json": answer(200, description()),
    }


def no_such_path(status: int, code: str, request: Request) -> Refusal:
    message = f"{request.method} {request.path} is not something that can be asked"
    return Refusal(status, code, message, "/docs shows what can be asked")
