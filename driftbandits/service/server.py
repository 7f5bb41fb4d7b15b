"""Runs one worker: opens the database, listens on a port, and stops gracefully."""

import asyncio
import gc
import ipaddress
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from math import inf
from pathlib import Path

from filelock import FileLock, Timeout
from uvicorn import Config, Server

from driftbandits.check import fail
from driftbandits.service.engine.worker import Worker
from driftbandits.service.free_memory import giving_back_memory
from driftbandits.service.http.app import Service
from driftbandits.service.http.asgi import AsgiApp
from driftbandits.service.http.connection import Connection
from driftbandits.service.http.keyring import digest_of, new_key
from driftbandits.service.store.database import sqlite_file
from driftbandits.service.store.store import Store

KEEP_ALIVE_SECONDS = 60  # that a connection may be idle between requests
GRACE_SECONDS = 30.0  # for answers that are on their way when it must stop
LAST_SECONDS = 5  # more, to send those that were given up
LAST_WAIT = 1.0  # seconds, for each thread that is still there in the end
BACKLOG = 2048  # connections waiting to be accepted
LEASE_SECONDS = 3.0
DEFAULT_FOLDER = "driftbandits-data"


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
    """Runs one worker until SIGINT or SIGTERM."""
    if without_keys and not is_loopback(host):
        rule = "127.0.0.1, ::1 or localhost without keys (create one: driftbandits keys create)"
        fail("--host", rule, host)
    if database and not public_url and host in ("0.0.0.0", "::"):
        fail("--url", f"given when --host is {host}, as other workers forward to it", None)
    where = database_url(data, database)
    with ExitStack() as stack:
        store = stack.enter_context(open_own_store(data, database))
        listener = stack.enter_context(listen(host, port))
        port = listener.getsockname()[1]
        url = public_url or f"http://{host_in_url(host)}:{port}"
        service = new_service(store, where, url, without_keys)
        print(f"driftbandits serves at {url}  (page: {url}/  API: {url}/docs)", flush=True)
        tune_interpreter()
        stack.enter_context(giving_back_memory())
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run(service, listener))
    leave()


def leave() -> None:
    """Ends the process at once if a thread is compiling, which cannot be interrupted.

    All answers have been sent and everything is on disk; Python would wait for the thread.
    """
    ours = [each for each in threading.enumerate() if each.name.startswith("driftbandits-")]
    for thread in ours:
        thread.join(LAST_WAIT)
    if any(thread.is_alive() for thread in ours):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def single_worker(url: str) -> Worker:
    """With SQLite, the worker that has the folder owns all bandits, also after a restart."""
    return Worker("alone", url, ttl=inf)


def one_of_many(url: str) -> Worker:
    return Worker(f"{socket.gethostname()}-{uuid.uuid4().hex[:12]}", url, ttl=LEASE_SECONDS)


def asgi_app(
    data: str | Path | None = None,
    database: str | None = None,
    *,
    url: str | None = None,
    without_keys: bool = False,
) -> AsgiApp:
    """Makes the decision service an ASGI application.

    Any ASGI server can run it, and it can be mounted in a Starlette or FastAPI application. It
    starts with the server's lifespan. Where it is mounted, start it with `async with` in your own
    lifespan. Run one process for each data folder or `url`.

    Args:
        data: The folder of the SQLite database. None uses the environment variable
            DRIFTBANDITS_DATA, or the folder `driftbandits-data`.
        database: The address of a PostgreSQL database to use instead. If neither `data` nor
            `database` is given, the environment variable DRIFTBANDITS_DATABASE counts.
        url: The address, with its prefix, at which other workers reach this one. None uses the
            environment variable DRIFTBANDITS_URL. It is required with a database.
        without_keys: Whether requests need no key. Then only requests that arrive at a loopback
            address are served.

    Returns:
        The application, which is also an asynchronous context manager.

    Raises:
        InputError: If a database is given without a `url`.

    Example:
        ```python
        import asyncio

        import httpx

        from driftbandits import asgi_app

        service = asgi_app("data", without_keys=True)


        async def main():
            inside = httpx.ASGITransport(service)
            async with service, httpx.AsyncClient(transport=inside) as http:
                answer = await http.get("http://localhost/readyz")
                assert answer.json() == {"status": "ready"}


        asyncio.run(main())
        ```
    """
    if data is None and database is None:
        database = os.environ.get("DRIFTBANDITS_DATABASE")
    folder = Path(data or os.environ.get("DRIFTBANDITS_DATA") or DEFAULT_FOLDER)
    url = (url or os.environ.get("DRIFTBANDITS_URL") or "").rstrip("/")
    if database and not url:
        fail("url", "given with a database, as other workers forward to it", None)

    @contextmanager
    def open_service() -> Iterator[Service]:
        with open_own_store(folder, database) as store:
            yield new_service(store, database_url(folder, database), url, without_keys)

    return AsgiApp(open_service, only_loopback=without_keys)


def new_service(store: Store, database: str, url: str, without_keys: bool) -> Service:
    """Makes one worker, which is not started yet."""
    if not without_keys:
        create_first_key(store)
    worker = single_worker(url) if sqlite_file(database) else one_of_many(url)
    return Service(store, worker, open_to_all=without_keys)


class WorkerServer(Server):
    """uvicorn's server without its signal handlers, which would end the process after a stop."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


async def run(service: Service, listener: socket.socket) -> None:
    """Serves until a signal; then finishes accepted requests and answers others with 503."""
    app = AsgiApp(lambda: nullcontext(service), only_loopback=False)
    server = WorkerServer(uvicorn_config(app))

    def stop() -> None:
        app.tell_to_stop(GRACE_SECONDS)
        server.should_exit = True

    call_on_signal(stop)
    async with app:
        await server.serve([listener])


def uvicorn_config(app: AsgiApp) -> Config:
    return Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        workers=1,
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=round(GRACE_SECONDS) + LAST_SECONDS,
    )


def new_loop() -> asyncio.AbstractEventLoop:
    """Makes uvloop's loop, or asyncio's where uvloop is not available (Windows)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def call_on_signal(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


def tune_interpreter() -> None:
    """Keeps the garbage collector from scanning all modules every few hundred requests.

    A shorter switch interval lets the three busy threads wait less for each other.
    """
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def open_store(data: Path, database: str | None) -> Iterator[Store]:
    """Opens the store of a service, which may be running."""
    store = Store(database_url(data, database))
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_own_store(data: Path, database: str | None) -> Iterator[Store]:
    """Opens the store of a worker; with SQLite, no other worker can use the same folder."""
    file = sqlite_file(database_url(data, database))
    with ExitStack() as stack:
        if file:
            stack.callback(lock_folder(file.parent, bool(database)).release)
        yield stack.enter_context(open_store(data, database))


def lock_folder(folder: Path, by_database: bool) -> FileLock:
    """Locks a folder, because an SQLite database belongs to one process."""
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        option, what = ("--database", "in a folder") if by_database else ("--data", "a folder")
        rule = f"{what} that no other service is using (for several workers, use PostgreSQL)"
        fail(option, rule, str(folder))
    return lock


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # fails if another process does
    except (OSError, OverflowError) as error:
        listener.close()
        fail("--port", f"a free port of {host} ({error})", port)
    return listener


def host_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def create_first_key(store: Store) -> None:
    """Creates a key if there is none, because the service would be unusable."""
    if not store.keys():
        key = new_key()
        store.add_key(digest_of(key), "admin", "first key")
        print(
            f"Created the first key, with the role admin. It is not shown again:\n  {key}",
            flush=True,
        )
