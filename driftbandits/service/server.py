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
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from driftbandits.check import fail
from driftbandits.service.http.app import Service
from driftbandits.service.http.connections import Connections
from driftbandits.service.http.keyring import digest_of, new_key
from driftbandits.service.store.store import Store

GRACE_SECONDS = 30.0  # for answers that are on their way when it must stop
LAST_WAIT = 1.0  # seconds, for each thread that is still there in the end
BACKLOG = 2048  # connections waiting to be accepted
SINGLE_WORKER = "alone"  # with SQLite; a restarted worker is the same one


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
    with ExitStack() as stack:
        if not database:
            stack.callback(lock_folder(data).release)
        store = Store(database_url(data, database))
        stack.callback(store.close)
        listener = stack.enter_context(listen(host, port))
        port = listener.getsockname()[1]
        url = public_url or f"http://{host_in_url(host)}:{port}"
        worker = (
            SINGLE_WORKER if database is None else f"{socket.gethostname()}-{uuid.uuid4().hex[:12]}"
        )
        service = Service(store, worker, url, open_to_all=without_keys)
        if not without_keys:
            create_first_key(store)
        print(f"driftbandits serves at {url}  (page: {url}/  API: {url}/docs)", flush=True)
        tune_interpreter()
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run(service, listener))
    leave()


def leave() -> None:
    """Ends the process now if a thread is compiling, which cannot be interrupted.

    All answers are given and everything is on the disk; Python alone would wait for the thread.
    """
    ours = [each for each in threading.enumerate() if each.name.startswith("driftbandits-")]
    for thread in ours:
        thread.join(LAST_WAIT)
    if any(thread.is_alive() for thread in ours):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def run(service: Service, listener: socket.socket) -> None:
    """Serves until a signal; then finishes accepted requests and answers others with 503."""
    stop_requested = asyncio.Event()

    def stop() -> None:
        service.tell_to_stop()
        stop_requested.set()

    call_on_signal(stop)
    service.start()
    try:
        connections = Connections(service.respond, service.limits)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(connections.new, sock=listener, backlog=BACKLOG)
        await stop_requested.wait()
        server.close()
        await connections.close(GRACE_SECONDS)
    finally:
        await service.stop()


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, or asyncio's where it is not available (Windows)."""
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

    The shorter switch interval lets its three busy threads wait less for each other.
    """
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def open_store(data: Path, database: str | None) -> Iterator[Store]:
    """The store of a service, which may be running."""
    store = Store(database_url(data, database))
    try:
        yield store
    finally:
        store.close()


def lock_folder(data: Path) -> FileLock:
    """An SQLite database belongs to one process."""
    data.mkdir(parents=True, exist_ok=True)
    lock = FileLock(data / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        rule = "a folder that no other service is using (for several workers, use PostgreSQL)"
        fail("--data", rule, str(data))
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
    """A service without any key would be unusable."""
    if not store.keys():
        key = new_key()
        store.add_key(digest_of(key), "admin", "first key")
        print(
            f"Created the first key, with the role admin. It is not shown again:\n  {key}",
            flush=True,
        )
