"""Deadlines and the graceful close: what takes too long is ended, what was accepted is answered."""

import asyncio
from typing import Any

import pytest

from driftbandits.service.http import connection
from tests.service.http.raw_http import (
    GET,
    HALF,
    LARGE,
    PATIENCE,
    Server,
    hasty_server,
    loop,
    server,
)

__all__ = ["hasty_server", "loop", "server"]  # fixtures: pytest finds them by name


@pytest.mark.parametrize("data", [b"", GET[:9], GET % b"plain", GET % b"plain" + GET[:9]])
def test_a_head_must_come_soon(hasty_server: Server, data: bytes) -> None:
    with hasty_server.call(data) as caller:
        assert b"plain" not in data or caller.answer() == (200, b"plain")
        assert caller.rest() == b""


def test_a_later_head_must_come_soon_once_begun(hasty_server: Server, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection, "KEEP_ALIVE_SECONDS", 2 * PATIENCE)
    with hasty_server.call(GET % b"plain") as caller:
        assert caller.answer() == (200, b"plain")
        hasty_server.until(lambda: hasty_server.only()._task is None)
        caller.sendall(GET[:9])
        assert caller.rest() == b""


@pytest.mark.parametrize("data", [HALF["body"], HALF["chunk"], GET % b"plain" + HALF["body"]])
def test_a_body_must_come_soon(hasty_server: Server, data: bytes) -> None:
    with hasty_server.call(data) as caller:
        assert b"plain" not in data or caller.answer() == (200, b"plain")
        assert caller.answer()[0] == 408
        assert caller.rest() == b""
        hasty_server.until_idle()


@pytest.mark.parametrize("length", [0, 9])
def test_an_answer_must_come_soon(hasty_server: Server, length: int) -> None:
    """Whether or not all of the request is there; the connection may be used again if it is."""
    data = b"GET /wait HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length
    with hasty_server.call(data) as caller:
        assert caller.answer() == (503, b"")
        caller.sendall(GET % b"plain")
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
    with hasty_server.call(b"") as caller:
        one = hasty_server.only()
        hasty_server.loop.call_soon_threadsafe(
            one._transport.set_write_buffer_limits, None if waits else 9 * LARGE
        )
        hasty_server.loop.call_soon_threadsafe(one.data_received, GET % path)
        hasty_server.until(lambda: hasty_server.seen)
        hasty_server.until_idle()
        assert not hasty_server.connections.open
        assert caller.count_rest() < LARGE
    assert ("ended" in hasty_server.seen) == path.startswith(b"parts")


def test_what_begins_when_time_is_over_is_still_answered(server: Server) -> None:
    with server.call(b"") as caller:
        one = server.only()

        def late() -> None:
            one.data_received(GET % b"plain")
            one.deadline_passed()

        server.loop.call_soon_threadsafe(late)
        assert caller.answer() == (200, b"plain")


def test_who_waits_when_it_closes_is_answered_and_nobody_else(server: Server) -> None:
    with server.call(b"") as idle, server.call(GET % b"wait" + GET % b"never") as caller:
        server.until_seen("wait")
        closing = asyncio.run_coroutine_threadsafe(server.connections.close(PATIENCE), server.loop)
        assert idle.rest() == b""
        server.open_gate()
        assert caller.head()[1]["connection"] == "close"
        assert caller.rest() == b"wait"
    closing.result(PATIENCE)
    assert server.seen == ["wait"]


@pytest.mark.parametrize("path", [b"wait", b"parts/wait", b"large"])
def test_closing_has_an_end(server: Server, path: bytes) -> None:
    with server.call(GET % path):
        server.until(lambda: server.seen)
        server.run(server.connections.close(0.0))
        server.until_idle()
    assert server.seen in (["wait", "cancelled"], ["parts", "ended"], ["large"])
