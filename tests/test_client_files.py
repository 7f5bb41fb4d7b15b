"""How the client reads logs, whom it waits for, and which way its requests go."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from driftbandits import InputError
from driftbandits.client import LONG, Client
from driftbandits.service_calls import ServiceError
from tests.fake_service import FakeService, refused

PARTS = [b"PAR1", b"rows" * 1000, b"footer"]


class Body(httpx.SyncByteStream):
    """Counts what was read; where it breaks, there is no end."""

    def __init__(self, breaks: bool = False) -> None:
        self.read, self.closed, self.breaks = 0, False, breaks

    def __iter__(self) -> Iterator[bytes]:
        for part in PARTS:
            self.read += 1
            yield part
        if self.breaks:
            raise httpx.RemoteProtocolError("peer closed connection")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def client(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr("driftbandits.service_calls.time.sleep", lambda _: None)
    with Client("http://test", transport=httpx.MockTransport(service)) as client:
        yield client


def test_a_log_is_read_as_it_is_asked_for(client: Client, service: FakeService) -> None:
    body = Body()
    service.answers = [refused(429), httpx.Response(200, stream=body)]
    parts = client.log("shop", "csv")
    assert service.asked == [], "until the first part is wanted"
    assert next(parts) == PARTS[0]
    assert body.read == 1
    assert list(parts) == PARTS[1:]
    assert body.closed
    assert [path for _, path, _ in service.asked] == ["/v1/bandits/shop/log?format=csv"] * 2


def test_a_log_that_is_no_longer_wanted_is_closed(client: Client, service: FakeService) -> None:
    body = Body()
    service.answers = [httpx.Response(200, stream=body)]
    parts = client.log("shop")
    next(parts)
    parts.close()  # type: ignore[attr-defined]
    assert body.closed
    assert body.read == 1


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_log_is_saved(client: Client, service: FakeService, tmp_path: Path, format: str) -> None:
    service.answers = [httpx.Response(200, stream=Body())]
    client.save_log("shop", tmp_path / f"log.{format}")
    assert (tmp_path / f"log.{format}").read_bytes() == b"".join(PARTS)
    assert service.asked == [("GET", f"/v1/bandits/shop/log?format={format}", None)]


def test_half_a_log_is_no_file(client: Client, service: FakeService, tmp_path: Path) -> None:
    body = Body(breaks=True)
    service.answers = [httpx.Response(200, stream=body)]
    with pytest.raises(ServiceError, match="http://test cut off the file: peer closed"):
        client.save_log("shop", tmp_path / "log.csv")
    assert body.closed
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_refused_is_no_file(
    client: Client, service: FakeService, tmp_path: Path
) -> None:
    service.answers = [refused(404, "unknown_bandit")]
    with pytest.raises(ServiceError, match="404 unknown_bandit"):
        client.save_log("shop", tmp_path / "log.csv")
    with pytest.raises(InputError, match=r"ends with \.parquet or \.csv, got 'log\.xls'"):
        client.save_log("shop", "log.xls")
    assert list(tmp_path.iterdir()) == []


def test_what_compiles_or_deletes_is_waited_for(service: FakeService) -> None:
    waits = []

    def answer(request: httpx.Request) -> httpx.Response:
        waits.append(request.extensions["timeout"])
        return service(request)

    with Client("http://test", timeout=3, transport=httpx.MockTransport(answer)) as client:
        client.create("shop", ["red"])
        client.add_arm("shop", "blue")
        client.delete("shop")
        client.decide("shop")
    assert [wait["read"] for wait in waits] == [LONG, LONG, LONG, 3]
    assert {wait["connect"] for wait in waits} == {3}
    with Client("http://test", timeout=900, transport=httpx.MockTransport(answer)) as client:
        client.create("shop", ["red"])
    assert waits[-1]["read"] == 900


class Heard(BaseHTTPRequestHandler):
    """Answers 404 and notes for whom."""

    def do_GET(self) -> None:  # the name that http.server calls
        self.server.heard.append(self.path)  # type: ignore[attr-defined]
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Heard)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_service_on_this_machine_is_asked_without_a_proxy(
    listener: HTTPServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # nobody listens there
    client = Client(f"http://{host}:{listener.server_port}", "secret", retries=0)
    with client, pytest.raises(ServiceError, match="404"):
        client.bandit("shop")
    assert listener.heard == ["/v1/bandits/shop"]  # type: ignore[attr-defined]


def test_another_machine_is_asked_as_the_environment_says(
    listener: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{listener.server_port}")
    client = Client("http://bandits.invalid", retries=0)
    with client, pytest.raises(ServiceError, match="404"):
        client.bandit("shop")
    assert listener.heard == ["http://bandits.invalid/v1/bandits/shop"]  # type: ignore
