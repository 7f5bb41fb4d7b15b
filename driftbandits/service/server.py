"""From a command to a running worker: the database, the port, and a graceful stop."""

import gc
import ipaddress
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from filelock import FileLock, Timeout
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftbandits.check import fail
from driftbandits.service.app import Service
from driftbandits.service.keyring import digest_of, new_key
from driftbandits.service.store import Store

HEADER_SECONDS = 10.0  # in which the head of a request must have come
ALONE = "alone"  # the worker of an embedded database: there is no other


class Protocol(HttpToolsProtocol):
    """Closes connections on which the head of a request comes too slowly, or none at all."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._patience = self.loop.call_later(HEADER_SECONDS, transport.close)

    def on_message_begin(self) -> None:
        self._patience.cancel()
        self._patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._patience.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """Answers 503 from the moment that it is told to stop; to be told is no failure."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002
        self._service.stopping = True
        self.should_exit = True


def database_url(data: Path, database: str | None) -> str:
    if database:
        return database
    data.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{(data / 'driftbandits.sqlite').resolve()}"


def serve(
    data: Path,
    database: str | None,
    host: str,
    port: int,
    public_url: str | None,
    without_keys: bool,
) -> None:
    """Runs one worker until it is told to stop."""
    if without_keys and not is_loopback(host):
        rule = "127.0.0.1, ::1 or localhost where there are no keys (make one: driftbandits keys)"
        fail("--host", rule, host)
    if database and not public_url and host in ("0.0.0.0", "::"):
        fail("--url", f"given where --host is {host}, as other workers forward to it", None)
    lock = None if database else only_one(data)
    store = Store(database_url(data, database))
    listener = bound(host, port)
    port = listener.getsockname()[1]
    url = public_url or f"http://{in_brackets(host)}:{port}"
    worker = ALONE if database is None else f"{socket.gethostname()}-{uuid.uuid4().hex[:12]}"
    service = Service(store, worker, url, open_to_all=without_keys)
    if not without_keys:
        first_key(store)
    print(f"driftbandits serves at {url}  (page: {url}/  API: {url}/docs)", flush=True)
    collect_less_garbage()
    config = uvicorn.Config(
        service, http=Protocol, access_log=False, log_level="warning", server_header=False,
        timeout_keep_alive=60, timeout_graceful_shutdown=30, ws="none", limit_concurrency=None,
    )  # fmt: skip
    try:
        Server(config, service).run(sockets=[listener])
    finally:
        store.close()
        if lock:
            lock.release()


def collect_less_garbage() -> None:
    """What is here stays, and need not be looked through at every few hundred requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def opened(data: Path, database: str | None) -> Iterator[Store]:
    """The store, for a moment, beside a service that may be running."""
    store = Store(database_url(data, database))
    try:
        yield store
    finally:
        store.close()


def only_one(data: Path) -> FileLock:
    """An embedded database belongs to one process."""
    data.mkdir(parents=True, exist_ok=True)
    lock = FileLock(data / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        rule = "a folder that no other service uses (for several workers, use PostgreSQL)"
        fail("--data", rule, str(data))
    return lock


def bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        fail("--port", f"a free one of {host} ({error})", port)
    return listener


def in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def first_key(store: Store) -> None:
    """Without any key nobody could ask for anything."""
    if not store.keys():
        key = new_key()
        store.add_key(digest_of(key), "admin", "the first")
        print(f"The first key, with the role admin; it is shown only now:\n  {key}", flush=True)
