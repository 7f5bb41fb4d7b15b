"""Logs as files on a real socket: sent as they are read, a few at a time, and to nobody else."""

import asyncio
import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from driftbandits.service.errors import ApiError
from driftbandits.service.http import asgi, export
from driftbandits.service.http.export import AT_ONCE, PAGE_ROWS, Exports
from driftbandits.service.http.protocol import Request, Response, error_response
from driftbandits.service.server import new_loop
from driftbandits.service.store.records import BanditRow, Entry, Event, LoggedDecision
from driftbandits.service.store.store import Store
from tests.service.http.raw_http import PATIENCE, PATIENT, SOON, HastyConnection, Server

ROWS = 100_000
PAGES = ROWS // PAGE_ROWS
ARMS = ["red", "=green", "'blue"]
FORMATS = ["csv", "parquet"]
LOG = b"GET /log?format=%s HTTP/1.1\r\n\r\n"


class SlowStore:
    """A store that reads as many pages as it may, and counts them."""

    def __init__(self, store: Store) -> None:
        self.store, self.read = store, 0
        self._allowed = threading.Semaphore(0)
        self.added_arms, self.corrections = store.added_arms, store.corrections
        self.is_kept = store.is_kept

    def allow(self, pages: int) -> None:
        self._allowed.release(pages)

    def log(self, bandit: int, chunk: int) -> Iterator[list[LoggedDecision]]:
        for page in self.store.log(bandit, chunk):
            assert self._allowed.acquire(timeout=PATIENCE)
            self.read += 1
            yield page


class LogServer(Server):
    def __init__(self, store: SlowStore, row: BanditRow, **options: Any) -> None:
        self.store, self.row, self.exports = store, row, Exports(store)  # type: ignore[arg-type]
        super().__init__(new_loop, **options)
        self.loop.set_default_executor(ThreadPoolExecutor(1))  # for all that is not an export

    async def _answer(self, request: Request) -> Response:
        if request.path == "/other":
            return Response(200, await asyncio.to_thread(lambda: b"other"))
        try:
            return self.exports.start(self.row, request.query("format", "csv"))
        except ApiError as error:
            return error_response(error)

    def end(self) -> None:
        self.store.allow(9 * PAGES * AT_ONCE)
        super().end()


def event(seq: int) -> Event:
    """Decisions, and the rewards of those with an even number."""
    context = np.float32([seq, 0.5]).tobytes()
    if seq > ROWS:
        return Event(seq, "reward", 2e9, f"id-{2 * (seq - ROWS)}", reward=0.25)
    return Event(seq, "decision", 1e9 + seq, f"id-{seq}", seq % 3, 0.5, b"", context, b"")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, BanditRow]]:
    """A log of a hundred thousand decisions."""
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('log') / 'log.sqlite'}")
    row = store.create_bandit("shop", {"arms": ARMS, "context": ["age", "hour"]})
    assert row
    lease = store.claim(row.id, "one", "http://one", 600)
    assert lease
    for last in range(0, 3 * ROWS // 2, 10_000):
        events = [event(seq) for seq in range(last + 1, last + 10_001)]
        assert not store.append([Entry(lease, last, events)])
    yield store, row
    store.close()


@pytest.fixture
def server(written: tuple[Store, BanditRow]) -> Iterator[LogServer]:
    server = LogServer(SlowStore(written[0]), written[1])
    yield server
    server.end()


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_has_the_whole_log(server: LogServer, format: str) -> None:
    server.store.allow(PAGES)
    with server.call(LOG % format.encode()) as caller:
        status, content = caller.answer()
    assert status == 200
    table = pl.read_csv(content) if format == "csv" else pl.read_parquet(io.BytesIO(content))
    numbers = range(1, ROWS + 1)
    assert table["id"].to_list() == [f"id-{seq}" for seq in numbers]
    assert table["context.age"].to_list() == list(map(float, numbers))
    assert table["reward"].to_list() == [None, 0.25] * (ROWS // 2)
    assert table["status"].to_list() == ["open", "rewarded"] * (ROWS // 2)
    arms = ARMS if format == "parquet" else ["red", "'=green", "''blue"]
    assert table["arm"].to_list() == [arms[seq % 3] for seq in numbers]
    assert server.store.read == PAGES


def test_arms_that_came_later_have_their_names(tmp_path: Path) -> None:
    """And the log is searched for them only where there are some."""
    store = Store(f"sqlite:///{tmp_path / 'log.sqlite'}")
    row = store.create_bandit("shop", {"arms": ["a"], "context": []})
    assert row
    lease = store.claim(row.id, "one", "http://one", 600)
    assert lease
    events = [Event(1, "decision", 1.0, "first", 0, 1.0), Event(2, "arm_added", 1.0, "b")]
    events += [Event(3, "decision", 1.0, "b", 1, 1.0), Event(4, "arm_added", 1.0, "c")]
    events += [Event(5, "arm_added", 1.0, "d"), Event(6, "decision", 1.0, "d", 3, 1.0)]
    store.append([Entry(lease, 0, events)])
    counted, searched = SlowStore(store), []
    counted.added_arms = lambda *a, **parts: searched.append(parts) or store.added_arms(*a, **parts)
    counted.allow(9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "PAGE_ROWS", 1)
        arms = [table["arm"].item() for table in export.tables(counted, row)]  # type: ignore
    store.close()
    assert arms == ["a", "b", "d"]
    assert searched == [{"after": 0, "until": 3}, {"after": 3, "until": 6}]


def test_text_in_csv_is_no_formula_and_can_be_had_back() -> None:
    texts = ["plain", "=1+1", "+1", "-1", "@sum", "'quoted", "''", "\uff1d1", 'a=1,"b"']
    table = pl.DataFrame({"id": texts, "arm": texts})
    content = b"".join(export.csv_parts(iter([table, table])))
    found = pl.read_csv(content, infer_schema=False)
    for text in found["id"]:
        assert text[0] in "'pa"
    assert found["id"].str.strip_prefix("'").to_list() == texts * 2
    assert found["arm"].to_list() == found["id"].to_list()


@pytest.mark.parametrize("format", FORMATS)
def test_it_begins_before_all_is_read(server: LogServer, format: str) -> None:
    """With rows, not only with a head."""
    server.store.allow(1)
    with server.call(LOG % format.encode()) as caller:
        assert caller.head()[0] == 200
        size = int(caller._came.readline(), 16)
        assert size > PAGE_ROWS
        assert server.store.read == 1
        caller.hang_up()


@pytest.mark.parametrize("format", FORMATS)
def test_memory_holds_a_part_at_a_time(written: tuple[Store, BanditRow], format: str) -> None:
    store = SlowStore(written[0])
    store.allow(PAGES)
    read, most = [], 0
    for part in export.FORMATS[format][1](export.tables(store, written[1])):  # type: ignore
        read.append(store.read)
        most = max(most, len(part))
    assert most < 2_000_000
    assert read[:3] == [1, 2, 3], "as it is asked for"


def test_a_wide_log_is_sent_in_shorter_groups() -> None:
    wide = pl.DataFrame({str(column): [0.5] * PAGE_ROWS for column in range(1000)})
    parts = list(export.parquet_parts(iter([wide] * 4)))
    assert [bool(part) for part in parts] == [True] * 5
    content = b"".join(parts)
    assert pl.read_parquet(io.BytesIO(content)).equals(pl.concat([wide] * 4))


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_read_for_who_has_left(server: LogServer, format: str) -> None:
    server.store.allow(1)
    with server.call(LOG % format.encode()) as caller:
        assert caller.head()[0] == 200
        caller._came.readline()
        caller.hang_up()
        server.until(lambda: not server.listening.state.connections)
    server.store.allow(PAGES)
    server.until_idle()
    assert server.store.read <= 2, "the page that was being read is the last"
    assert server.exports._running == 0


def test_who_does_not_read_gives_its_place_back(
    written: tuple[Store, BanditRow], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Although the log has no end."""
    monkeypatch.setattr(asgi, "TICK_SECONDS", SOON / 5)
    hasty = {"limits": PATIENT._replace(answer_seconds=SOON), "kind": HastyConnection}
    server = LogServer(SlowStore(written[0]), written[1], **hasty)
    page = next(written[0].log(written[1].id, PAGE_ROWS))
    monkeypatch.setattr(server.store, "log", lambda *_: repeat(page))
    with ExitStack() as stack:
        stack.callback(server.end)
        callers = [stack.enter_context(server.call(LOG % b"csv")) for _ in range(AT_ONCE)]
        assert [caller.head()[0] for caller in callers] == [200] * AT_ONCE
        server.until_idle()
        assert server.exports._running == 0
    assert "its caller did not read it" in caplog.text


def test_a_few_at_a_time_and_others_are_answered(server: LogServer) -> None:
    """While every export waits for its page, and all that wait use one thread between them."""
    with ExitStack() as stack:
        asked = [LOG % format.encode() for format in 4 * FORMATS]
        callers = [stack.enter_context(server.call(each)) for each in asked]
        assert len(callers) == AT_ONCE
        for caller in callers:
            assert caller.head()[0] == 200
        with server.call(b"GET /other HTTP/1.1\r\n\r\n" + LOG % b"csv") as other:
            assert other.answer() == (200, b"other")
            status, headers = other.head()
            assert (status, headers["retry-after"]) == (429, "10")
        assert server.store.read == 0
        callers[0].hang_up()
        server.store.allow(9)
        server.until(lambda: server.exports._running < AT_ONCE)
        with server.call(LOG % b"csv") as next_one:
            assert next_one.head()[0] == 200
            next_one.hang_up()
        for caller in callers[1:]:
            caller.hang_up()


def test_who_asks_for_the_head_takes_no_place(server: LogServer) -> None:
    head = LOG.replace(b"GET", b"HEAD") % b"parquet"
    with server.call(head * 2 * AT_ONCE) as caller:
        for _ in range(2 * AT_ONCE):
            status, headers = caller.head()
            assert (status, headers["content-type"]) == (200, "application/vnd.apache.parquet")
    assert server.store.read == 0
    assert server.exports._running == 0


def test_two_threads_read_for_all(server: LogServer, monkeypatch: Any) -> None:
    names: set[str] = set()
    table_of = export.table_of

    def noted(*arguments: Any) -> pl.DataFrame:
        names.add(threading.current_thread().name)
        return table_of(*arguments)

    monkeypatch.setattr(export, "table_of", noted)
    with ExitStack() as stack:
        callers = [stack.enter_context(server.call(LOG % b"csv")) for _ in range(AT_ONCE)]
        server.store.allow(3 * AT_ONCE)
        server.until(lambda: server.store.read == 3 * AT_ONCE)
        for caller in callers:
            caller.hang_up()
    assert names == {"driftbandits-export_0", "driftbandits-export_1"}


def test_a_log_that_cannot_be_read_on_is_cut(
    server: LogServer, monkeypatch: Any, caplog: Any
) -> None:
    def failing(*_: Any) -> Iterator[list[LoggedDecision]]:
        yield next(server.store.store.log(server.row.id, 10))
        raise OSError("the disk is gone")

    monkeypatch.setattr(server.store, "log", failing)
    with server.call(LOG % b"csv") as caller:
        caller.settimeout(PATIENCE)
        assert b"id-1" in caller.rest()
    server.until_idle()
    assert server.exports._running == 0
    assert "the disk is gone" in caplog.text
