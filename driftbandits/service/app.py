"""The service as an ASGI application, put together from its parts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route as Endpoint

from driftbandits.service.engine import Engine
from driftbandits.service.forwarding import Forwarder
from driftbandits.service.gauges import Gauges
from driftbandits.service.handlers import Handlers
from driftbandits.service.http import USUAL, Limits, answer, decoded, guarded, read_body, refused
from driftbandits.service.keyring import Keyring
from driftbandits.service.openapi import description
from driftbandits.service.refusals import Refusal
from driftbandits.service.routes import ROUTES, Route
from driftbandits.service.store import Store

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}


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
        self.engine = Engine(store, worker, url, ttl, self.gauges)
        self.stopping = False
        self._keyring = Keyring(store, open_to_all)
        self._limits = limits
        self._forwarder = Forwarder(store, worker)
        self._handlers = Handlers(store, self.engine, self._forwarder, limits)
        self.app = Starlette(
            routes=[*map(self._endpoint, ROUTES), *pages()],
            lifespan=self._lifespan,
            exception_handlers={HTTPException: no_such_page},
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.engine.start()
        yield
        self.stopping = True
        await asyncio.to_thread(self.engine.stop)
        await self._forwarder.close()

    def _endpoint(self, route: Route) -> Endpoint:
        handler = getattr(self._handlers, route.handler)
        decoder: msgspec.json.Decoder[Any] | None = (
            None if route.body is None else msgspec.json.Decoder(route.body)
        )

        async def handle(request: Request) -> Response:
            if route.role:
                await self._check_key(request, route.role)
            body = None
            if decoder is not None:
                request.state.body = await read_body(request, self._limits)
                body = decoded(decoder, request.state.body)
            return await handler(request, body)

        safe = guarded(
            handle, f"{route.method} {route.path}", self._limits, self.gauges,
            lambda: self.stopping and route.handler != "healthy",
        )  # fmt: skip
        return Endpoint(route.path, safe, methods=[route.method])

    async def _check_key(self, request: Request, role: str) -> None:
        header = request.headers.get("authorization")
        if not self._keyring.check_cached(header, role):
            await asyncio.to_thread(self._keyring.check, header, role)


def pages() -> list[Endpoint]:
    """The pages for people, and the description for programs."""
    text: dict[str, Any] = {"/openapi.json": description()}
    here = resources.files("driftbandits.service")

    def page(name: str) -> Callable[[Request], Awaitable[Response]]:
        content = (here / name).read_text(encoding="utf-8")

        async def show(request: Request) -> Response:
            return HTMLResponse(content, headers=HEADERS)

        return show

    async def openapi(request: Request) -> Response:
        return answer(200, text["/openapi.json"])

    return [
        Endpoint("/", page("page.html")),
        Endpoint("/docs", page("docs.html")),
        Endpoint("/openapi.json", openapi),
    ]


async def no_such_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = {404: "no_such_path", 405: "wrong_method"}.get(status, "refused")
    message = f"{request.method} {request.url.path} is not something that can be asked"
    return refused(Refusal(status, code, message, "/docs shows what can be asked"))
