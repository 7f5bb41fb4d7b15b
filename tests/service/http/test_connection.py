"""One caller on a real socket: how it is answered, and what becomes of it when it leaves."""

import socket
from collections.abc import Callable

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftbandits.service.http.connection import Connection
from tests.service.http.raw_http import (
    ECHO,
    GET,
    HALF,
    MOST,
    Caller,
    Server,
    patient,
    server,
)

__all__ = ["patient", "server"]  # fixtures: pytest finds them by name


def test_requests_wait_for_their_turn_and_reading_goes_on(server: Server) -> None:
    with server.call(GET % b"wait" + GET % b"parts" + GET % b"plain" + ECHO) as caller:
        server.until_seen("wait")
        server.open_gate()
        expected = [(200, b"wait"), (200, b"onetwothree"), (200, b"plain"), (200, b"body")]
        assert [caller.answer() for _ in range(3)] == expected[:3]
        caller.sendall(b"Content-Length: 4\r\n\r\nbody")
        assert caller.answer() == expected[3]


@pytest.mark.parametrize(("path", "length"), [(b"plain", "5"), (b"parts", None)])
def test_a_head_is_answered_without_a_body(server: Server, path: bytes, length: str | None) -> None:
    with server.call(b"HEAD /%s HTTP/1.1\r\n\r\n" % path + GET % b"plain") as caller:
        status, headers = caller.head()
        assert (status, headers["content-length"]) == (200, length)
        assert caller.answer() == (200, b"plain")


@pytest.mark.parametrize("kept", [b"", b"Connection: keep-alive\r\n"])
def test_who_speaks_an_older_http_is_answered_once(server: Server, kept: bytes) -> None:
    with server.call(b"GET /plain HTTP/1.0\r\n%s\r\n" % kept + GET % b"never") as caller:
        assert caller.head()[1]["connection"] == "close"
        assert caller.rest() == b"plain"
    assert server.seen == ["plain"]


def test_who_speaks_an_older_http_is_not_told_to_continue(server: Server) -> None:
    head = b"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    with server.call(head) as caller:
        server.until_seen("echo")
        caller.sendall(b"body")
        assert caller.answer() == (200, b"body")
        assert caller.rest() == b""


def test_after_the_last_request_of_a_connection_it_ends(server: Server) -> None:
    last = b"GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n"
    for data in (last, last + GET % b"never"):
        with server.call(data) as caller:
            assert caller.head()[1]["connection"] == "close"
            assert caller.rest() == b"plain"
    assert "never" not in server.seen


@pytest.mark.parametrize("more", [0, 1])
def test_who_stops_talking_may_listen(server: Server, more: int) -> None:
    with server.call(GET % b"wait" + GET % b"parts" * more) as caller:
        caller.shutdown(socket.SHUT_WR)
        server.until_seen("wait")
        server.until(lambda: more or not server.only().cycle.keep_alive)
        server.open_gate()
        assert caller.answer() == (200, b"wait")
        assert not more or caller.answer() == (200, b"onetwothree")
        assert caller.rest() == b""


@pytest.mark.parametrize(
    ("path", "begun"), [(b"large", ["large", "next"]), (b"parts/large", ["parts", "further"])]
)
def test_an_answer_goes_no_faster_than_it_is_read(
    server: Server, path: bytes, begun: list[str]
) -> None:
    """One part more is made, or one answer, and waits."""
    with server.call(GET % path + GET % b"next" + GET % b"last") as caller:
        server.until(lambda: server.only().flow.write_paused)
        server.until_seen(*begun)
        caller.hang_up()
    server.until_idle()
    assert server.seen[:2] == begun
    assert "last" not in server.seen


@pytest.mark.parametrize("part", HALF)
@pytest.mark.parametrize("leave", [Caller.hang_up, Caller.close, None])
def test_who_leaves_in_the_middle_of_a_request_is_forgotten(
    server: Server, part: str, leave: Callable[[Caller], None] | None
) -> None:
    with server.call(HALF[part]) as caller:
        server.until(lambda: server.listening.state.connections and (server.seen or part == "head"))
        if leave:
            leave(caller)
        else:
            caller.shutdown(socket.SHUT_WR)
            assert caller.rest() == b""


@pytest.mark.parametrize("behind", [b"", GET % b"never"])
@pytest.mark.parametrize("path", [b"wait", b"parts/wait", b"late"])
def test_who_leaves_before_the_answer_is_forgotten_when_it_is_there(
    server: Server, path: bytes, behind: bytes
) -> None:
    with server.call(GET % path + behind) as caller:
        server.until(lambda: server.seen)
        caller.hang_up()
        if not behind:  # otherwise it is not read from
            server.until(lambda: not server.listening.state.connections)
        server.open_gate()
    server.until_idle()
    last = "ended" if b"parts" in path else path.decode()
    assert server.seen[-1] == last
    assert "never" not in server.seen


def test_who_leaves_unnoticed_is_noticed_in_the_end(server: Server) -> None:
    head = b"GET /parts/quiet HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % MOST
    with server.call(head + bytes(300_000)) as caller:
        server.until_seen("parts")
        caller.hang_up()
        server.open_gate()
    server.until_seen("parts", "ended")
    assert server.seen == ["parts", "ended"]


def test_requests_of_who_left_are_not_begun(server: Server) -> None:
    with server.call(GET % b"wait" + GET % b"never" * 9) as caller:
        server.until_seen("wait")
        caller.hang_up()
        server.open_gate()
        server.until_idle()
    assert server.seen == ["wait"]


def test_an_answer_that_fails_is_cut(server: Server) -> None:
    server.logged = ["Exception in ASGI application\n"]
    with server.call(GET % b"parts/wrong") as caller:
        rest = caller.rest()
        assert b"one" in rest
        assert b"\r\n0\r\n" not in rest


@pytest.mark.parametrize("name", ["_start_asgi_task", "_should_upgrade", "on_response_complete"])
def test_uvicorn_has_what_is_done_otherwise(name: str) -> None:
    """Under another name, its own would be called instead of ours, and nobody would notice."""
    assert getattr(HttpToolsProtocol, name) is not getattr(Connection, name)
