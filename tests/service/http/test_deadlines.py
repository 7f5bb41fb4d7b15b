"""Deadlines and the graceful close: what takes too long is ended, what was accepted is answered."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from driftbandits.service.http import asgi
from tests.service.http.raw_http import (
    GET,
    HALF,
    LARGE,
    LOOPS,
    PATIENCE,
    SOON,
    Caller,
    PatientConnection,
    Server,
    hasty,
    hasty_server,
)

__all__ = ["hasty", "hasty_server"]  # fixtures: pytest finds them by name

CUT_OFF = [
    "an answer was cut off, as its caller did not read it",
    "ASGI callable returned without completing response.",
]


@pytest.mark.parametrize("data", [b"", GET[:9], GET % b"plain", GET % b"plain" + GET[:9]])
def test_a_head_must_come_soon(hasty_server: Server, data: bytes) -> None:
    with hasty_server.call(data) as caller:
        assert b"plain" not in data or caller.answer() == (200, b"plain")
        assert caller.rest() == b""


def test_a_later_head_must_come_soon_once_begun(hasty_server: Server) -> None:
    with hasty_server.call(GET % b"plain") as caller:
        one = hasty_server.only()
        one.timeout_keep_alive = 2 * PATIENCE
        assert caller.answer() == (200, b"plain")
        caller.sendall(GET[:9])
        assert caller.rest() == b""


def test_empty_lines_are_no_request(hasty_server: Server) -> None:
    with hasty_server.call(GET % b"plain" + b"\r\n") as caller:
        assert caller.answer() == (200, b"plain")
        assert caller.rest() == b""


@pytest.mark.parametrize("data", [HALF["body"], HALF["chunk"], GET % b"plain" + HALF["body"]])
def test_a_body_must_come_soon(hasty_server: Server, data: bytes) -> None:
    with hasty_server.call(data) as caller:
        assert b"plain" not in data or caller.answer() == (200, b"plain")
        assert caller.answer()[0] == 408
        assert caller.rest() == b""


def test_a_body_that_nobody_wants_must_end_soon(hasty_server: Server) -> None:
    endless = b"GET /plain HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with hasty_server.call(endless) as caller:
        assert caller.answer() == (200, b"plain")
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_forever(caller, b"10000\r\n%b\r\n" % bytes(65_536))


def send_forever(caller: Caller, data: bytes) -> None:
    while True:
        caller.sendall(data)


@pytest.mark.parametrize("length", [0, 9])
def test_an_answer_must_come_soon(hasty_server: Server, length: int) -> None:
    """Whether or not all of the request is there; the connection may be used again if it is."""
    data = b"GET /wait HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length
    with hasty_server.call(data) as caller:
        assert caller.answer() == (503, b"")
        caller.sendall(GET % b"plain" if length == 0 else b"")
        assert caller.answer() == (200, b"plain") if length == 0 else caller.rest() == b""


@pytest.mark.parametrize("path", [b"wait", b"parts/wait"])
def test_an_answer_for_nobody_must_come_soon(hasty_server: Server, path: bytes) -> None:
    with hasty_server.call(GET % path) as caller:
        hasty_server.until(lambda: hasty_server.seen)
        caller.hang_up()
        hasty_server.until_idle()
    assert hasty_server.seen in (["wait", "cancelled"], ["parts", "ended"])


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("path", [b"large", b"parts/large"])
def test_an_answer_must_be_read_soon(hasty_server: Server, path: bytes, waits: bool) -> None:
    """Whether the answer waits for its reader, or only the socket still has it."""
    hasty_server.logged = CUT_OFF if waits and path != b"large" else []
    with hasty_server.call(b"") as caller:
        one = hasty_server.only()
        hasty_server.loop.call_soon_threadsafe(
            one.transport.set_write_buffer_limits, None if waits else 9 * LARGE
        )
        hasty_server.loop.call_soon_threadsafe(one.data_received, GET % path)
        hasty_server.until(lambda: hasty_server.seen)
        hasty_server.until_idle()
        assert caller.count_rest() < LARGE
    assert ("ended" in hasty_server.seen) == path.startswith(b"parts")


def test_nor_may_a_further_answer_wait_for_its_reader(hasty_server: Server) -> None:
    not_begun = "ASGI callable returned without starting response."
    hasty_server.logged = [CUT_OFF[0], not_begun]
    with hasty_server.call(b"") as caller:
        hasty_server.only()
        caller.sendall(2 * (GET % b"large"))
        hasty_server.until_seen("large", "large")
        hasty_server.until_idle()
        assert caller.count_rest() < 2 * LARGE


class BriefConnection(PatientConnection):
    linger_seconds, answer_seconds = SOON, 20 * SOON


@pytest.fixture(params=LOOPS)
def stopping(request: pytest.FixtureRequest, monkeypatch: Any) -> Iterator[Server]:
    """One that each test stops."""
    monkeypatch.setattr(asgi, "TICK_SECONDS", SOON / 5)
    server = Server(LOOPS[request.param], kind=BriefConnection)
    yield server
    server.end()


def test_who_waits_when_it_stops_is_answered(stopping: Server) -> None:
    with stopping.call(b"") as idle, stopping.call(GET % b"wait") as caller:
        stopping.until_seen("wait")
        stopping.stop(grace=PATIENCE)
        assert idle.rest() == b""
        stopping.open_gate()
        assert caller.head()[1]["connection"] == "close"
        assert caller.rest() == b"wait"
    stopping.until_idle()


@pytest.mark.parametrize("path", [b"wait", b"parts/wait", b"large"])
def test_a_stop_has_an_end(stopping: Server, path: bytes) -> None:
    with stopping.call(GET % path):
        stopping.until(lambda: stopping.seen)
        stopping.stop()
        stopping.until_idle()
    assert stopping.seen in (["wait", "cancelled"], ["parts", "ended"], ["large"])


def test_a_large_last_answer_may_take_its_time(stopping: Server) -> None:
    """Longer than a caller has who need not read any more."""
    with stopping.call(
        GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % b"large"
    ) as caller:
        stopping.until_seen("large")
        time.sleep(10 * SOON)
        assert caller.count_rest() > LARGE
    stopping.stop()
