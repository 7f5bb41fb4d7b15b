"""A real service in a process of its own, to be asked, stopped and killed."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from driftbandits.service.http.asgi import AsgiApp
from tests.uncovered import without_coverage

STARTING = 120  # seconds, on a busy machine


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Serving:
    """One worker; `start` after `kill` is the same worker again, on the same port."""

    def __init__(
        self,
        *arguments: str,
        keys: bool = False,
        covered: bool = True,
        errors: Path | None = None,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = [*arguments, *([] if keys else ["--without-keys"])]
        self._environment = None if covered else without_coverage()
        self._errors = errors  # a file that its log is added to
        self.process: subprocess.Popen[str] | None = None
        self.said: list[str] = []

    def start(self) -> "Serving":
        command = [sys.executable, "-m", "driftbandits", "serve", "--port", str(self.port)]
        with self._errors.open("a") if self._errors else nullcontext() as errors:
            self.process = subprocess.Popen(
                [*command, *self._arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment,
            )
        assert self.process.stdout
        self.said = []
        while not self.said or "serves at" not in self.said[-1]:
            line = self.process.stdout.readline()
            assert line, "the service ended before it served"
            self.said.append(line)
        self.wait_until_ready()
        return self

    def wait_until_ready(self) -> None:
        end = time.monotonic() + STARTING
        while time.monotonic() < end:
            try:
                if ask(self.url, "GET", "/readyz")[0] == 200:
                    return
            except (OSError, HTTPException):
                time.sleep(0.02)
        raise AssertionError("the service is not ready")

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.communicate()

    def pause(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> "Serving":
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.poll() is None:
            self.kill() if self._environment else self.stop()  # one that is killed covers nothing

    def stop(self) -> int:
        """As an operator does; gives the exit code."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=STARTING)
        return self.process.returncode


@contextmanager
def served(folder: Path, *arguments: str, keys: bool = False) -> Iterator[Serving]:
    """A service with a database of its own in a folder."""
    with Serving("--data", str(folder), *arguments, keys=keys) as serving:
        yield serving


def ask(
    url: str, method: str, path: str, body: Any = None, key: str | None = None, timeout: float = 60
) -> tuple[int, Any]:
    """Status and JSON of one request on a connection of its own."""
    connection = HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    content = body if isinstance(body, bytes | None) else json.dumps(body)
    try:
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    kind = response.getheader("content-type") or ""
    return response.status, json.loads(text) if text and "json" in kind else text


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("service")) as serving:
        yield serving


def mounted(bandits: AsgiApp, prefix: str) -> Starlette:
    """An application with the service under a prefix, as the documents have it."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with bandits:
            yield

    return Starlette(routes=[Mount(prefix, bandits)], lifespan=lifespan)


def create(url: str, name: str, **rest: object) -> dict:
    body = {"name": name, "arms": ["red", "green"], "policy": "thompson", **rest}
    status, answer = ask(url, "POST", "/v1/bandits", body)
    assert status in (200, 201), answer
    return answer


def events_of(url: str, name: str) -> tuple:
    found = ask(url, "GET", f"/v1/bandits/{quote(name, safe='')}")[1]
    return found["decisions"], found["rewards"], found["expired"], found["open"], len(found["arms"])
