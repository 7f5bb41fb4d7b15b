"""From a command to a running worker: the database, the port, and a graceful stop."""

import asyncio
import gc
import ipaddress
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from driftbandits.check import fail
from driftbandits.service.app import Service
from driftbandits.service.connection import Connections
from driftbandits.service.keyring import digest_of, new_key
from driftbandits.service.store import Store

GRACE = 30.0  # seconds for answers that are on their way when it is told to stop
BACKLOG = 2048  # connections that wait to be accepted
ALONE = "alone"  # the worker of an embedded database: there is no other


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
    with ExitStack() as stack:
        if not database:
            stack.callback(only_one(data).release)
        store = Store(database_url(data, database))
        stack.callback(store.close)
        listener = stack.enter_context(bound(host, port))
        port = listener.getsockname()[1]
        url = public_url or f"http://{in_brackets(host)}:{port}"
        worker = ALONE if database is None else f"{socket.gethostname()}-{uuid.uuid4().hex[:12]}"
        service = Service(store, worker, url, open_to_all=without_keys)
        if not without_keys:
            first_key(store)
        print(f"driftbandits serves at {url}  (page: {url}/  API: {url}/docs)", flush=True)
        tune_the_interpreter()
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run(service, listener))


async def run(service: Service, listener: socket.socket) -> None:
    """Until it is told to stop: then it answers what it accepted, and the rest with 503."""
    told = asyncio.Event()

    def stop() -> None:
        service.tell_to_stop()
        told.set()

    on_signal(stop)
    service.start()
    try:
        connections = Connections(service.answer, service.limits)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(connections.new, sock=listener, backlog=BACKLOG)
        await told.wait()
        server.close()
        await connections.close(GRACE)
    finally:
        await service.stop()


def new_loop() -> asyncio.AbstractEventLoop:
    """The one in C; there is none for Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def on_signal(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


def tune_the_interpreter() -> None:
    """What is here stays, and need not be looked through at every few hundred requests.

    Its three busy threads wait for each other less long than they usually would.
    """
    sys.setswitchinterval(0.001)
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
        listener.listen(BACKLOG)  # which tells whether another one does
    except (OSError, OverflowError) as error:
        listener.close()
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
