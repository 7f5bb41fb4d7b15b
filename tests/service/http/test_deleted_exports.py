"""A log whose bandit is deleted while it is being sent: its caller sees that it is incomplete."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftbandits import Client, asgi_app
from driftbandits.service.http import export
from driftbandits.service.http.connection import Connection
from driftbandits.service.http.export import LogDeletedError, csv_parts, parquet_parts, tables
from driftbandits.service.store.records import Entry, Event
from driftbandits.service.store.store import Store
from driftbandits.service_calls import ServiceError
from tests.browser import Server

ROWS = 10
PAGE = 5  # rows, so that the last page is a full one
FORMATS = {"csv": csv_parts, "parquet": parquet_parts}
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE_ROWS", PAGE)
    monkeypatch.setattr(export, "GROUP_ROWS", PAGE)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("sent", [0, 1, 2])
def test_what_is_left_of_a_log_is_not_all_of_it(tmp_path: Path, format: str, sent: int) -> None:
    store = Store(f"sqlite:///{tmp_path / 'log.sqlite'}")
    row = store.create_bandit("shop", {"arms": ["a"], "context": []})
    assert row
    lease = store.claim(row.id, "one", "http://one", 600)
    assert lease
    decisions = [Event(seq, "decision", 1.0, str(seq), 0, 1.0) for seq in range(1, ROWS + 1)]
    store.append([Entry(lease, 0, decisions)])
    parts = FORMATS[format](tables(store, row))
    for _ in range(sent):
        assert next(parts)
    assert store.delete_bandit(lease)
    while store.delete_page(ROWS):
        pass
    with pytest.raises(LogDeletedError, match="'shop' was deleted while its log was being sent"):
        list(parts)
    store.close()


class Gate:
    """The second page waits until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.open, made = threading.Event(), threading.Event(), list[Any]()
        table_of = export.table_of

        def wait(*arguments: Any) -> pl.DataFrame:
            made.append(arguments)
            if len(made) == 2:
                self.reached.set()
                assert self.open.wait(PATIENCE)
            return table_of(*arguments)

        monkeypatch.setattr(export, "table_of", wait)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Of a service on uvicorn, with a bandit."""
    server = Server(asgi_app(tmp_path / "data", without_keys=True), lifespan="on")
    with Client(server.url) as client:
        client.create("shop", ["a", "b"], policy="uniform")
        client.decide_many("shop", [{} for _ in range(ROWS)])
        yield client
    server.stop()


@pytest.mark.parametrize("format", FORMATS)
def test_the_client_is_told(client: Client, format: str, tmp_path: Path, monkeypatch: Any) -> None:
    gate, file = Gate(monkeypatch), tmp_path / f"log.{format}"
    file.write_bytes(b"an older log")
    parts = client.log("shop", format)
    assert next(parts)
    client.delete("shop")
    gate.open.set()
    with pytest.raises(ServiceError, match="cut off the file") as cut:
        list(parts)
    assert cut.value.code == "cut_off"
    with pytest.raises(ServiceError, match="there is no bandit named 'shop'"):
        client.save_log("shop", file)
    assert file.read_bytes() == b"an older log"


@pytest.mark.parametrize("kind", [Connection, HttpToolsProtocol])
def test_our_own_connections_need_no_traceback(
    tmp_path: Path, monkeypatch: Any, caplog: Any, kind: type
) -> None:
    """Any other server is told by an exception, which it logs."""
    server = Server(asgi_app(tmp_path / "data", without_keys=True), lifespan="on", http=kind)
    gate = Gate(monkeypatch)
    with Client(server.url) as client:
        client.create("shop", ["a", "b"], policy="uniform")
        client.decide_many("shop", [{} for _ in range(ROWS)])
        parts = client.log("shop", "csv")
        assert next(parts)
        client.delete("shop")
        gate.open.set()
        with pytest.raises(ServiceError, match="cut off the file"):
            list(parts)
    server.stop()
    assert ("Traceback" in caplog.text) == (kind is HttpToolsProtocol)
    assert ("an answer was cut off: bandit 'shop'" in caplog.text) == (kind is Connection)


@pytest.mark.parametrize("format", FORMATS)
def test_no_file_is_left(client: Client, format: str, tmp_path: Path, monkeypatch: Any) -> None:
    gate, file = Gate(monkeypatch), tmp_path / f"log.{format}"
    failures: list[ServiceError] = []

    def save() -> None:
        try:
            client.save_log("shop", file)
        except ServiceError as error:
            failures.append(error)

    saving = threading.Thread(target=save)
    saving.start()
    assert gate.reached.wait(PATIENCE)
    client.delete("shop")
    gate.open.set()
    saving.join(PATIENCE)
    assert [failure.code for failure in failures] == ["cut_off"]
    assert not file.exists()
