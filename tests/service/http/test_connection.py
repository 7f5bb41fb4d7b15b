"""One caller on a real socket: how it is answered, and what becomes of it when it leaves.

After each test no connection is left, no task, and nothing was logged that should not be.
"""

import socket
from collections.abc import Callable

import pytest

from tests.service.http.raw_http import (
    ECHO,
    GET,
    HALF,
    MOST,
    Caller,
    Server,
    loop,
    server,
)

__all__ = ["loop", "server"]  # fixtures: pytest finds them by name


def test_requests_wait_for_their_turn_and_reading_goes_on(server: Server) -> None:
    with server.call(GET % b"wait" + GET % b"parts" + GET % b"plain" + ECHO) as caller:
        server.until_seen("wait")
        assert not server.only()._transport.is_reading()
        server.open_gate()
        expected = [(200, b"wait"), (200, b"onetwothree"), (200, b"plain"), (200, b"body")]
        assert [caller.answer() for _ in range(3)] == expected[:3]
        caller.sendall(b"Content-Length: 4\r\n\r\nbody")
        assert caller.answer() == expected[3]
        server.until(lambda: server.only()._task is None)
        assert server.only()._reader.current is None  # nor is its body kept


@pytest.mark.parametrize(("path", "length"), [(b"plain", "5"), (b"parts", None)])
def test_a_head_is_answered_without_a_body(server: Server, path: bytes, length: str | None) -> None:
    with server.call(b"HEAD /%s HTTP/1.1\r\n\r\n" % path + GET % b"plain") as caller:
        status, headers = caller.head()
        assert (status, headers["content-length"]) == (200, length)
        assert caller.answer() == (200, b"plain")


def test_who_speaks_an_older_http_is_answered_in_it(server: Server) -> None:
    with server.call(b"GET /parts HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") as caller:
        assert caller.head()[1].keys() == ["date", "connection"]
        assert caller.rest() == b"onetwothree"
    head = b"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"
    with server.call(head + b"Connection: keep-alive\r\n\r\n") as caller:
        server.until(lambda: "echo" in server.seen)
        caller.sendall(b"body")
        assert caller.answer() == (200, b"body")
        assert caller.rest() == b""


def test_after_the_last_request_of_a_connection_it_ends(server: Server) -> None:
    last = b"GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n"
    for data in (last, last + GET % b"never", b"CONNECT plain:1 HTTP/1.1\r\n\r\nnot HTTP"):
        with server.call(data) as caller:
            assert caller.head()[1]["connection"] == "close"
            assert caller.rest() == (b"" if data.startswith(b"CONNECT") else b"plain")
    assert "never" not in server.seen


@pytest.mark.parametrize("more", [0, 1])
def test_who_stops_talking_may_listen(server: Server, more: int) -> None:
    with server.call(GET % b"wait" + GET % b"parts" * more) as caller:
        caller.shutdown(socket.SHUT_WR)
        server.until(lambda: server.seen and (more or server.only()._input_ended))
        server.open_gate()
        assert caller.answer() == (200, b"wait")
        assert not more or caller.answer() == (200, b"onetwothree")
        assert caller.rest() == b""


@pytest.mark.parametrize("path", [b"large", b"parts/large"])
def test_an_answer_goes_no_faster_than_it_is_read(server: Server, path: bytes) -> None:
    with server.call(GET % path + GET % b"further") as caller:
        server.until(lambda: server.only()._writable)
        assert "further" not in server.seen
        caller.hang_up()


@pytest.mark.parametrize("part", HALF)
@pytest.mark.parametrize("leave", [Caller.hang_up, Caller.close, None])
def test_who_leaves_in_the_middle_of_a_request_is_forgotten(
    server: Server, part: str, leave: Callable[[Caller], None] | None
) -> None:
    with server.call(HALF[part]) as caller:
        server.until(lambda: server.connections.open and (server.seen or part == "head"))
        if leave:
            leave(caller)
        else:
            caller.shutdown(socket.SHUT_WR)
            assert caller.rest() == b""


@pytest.mark.parametrize("path", [b"wait", b"parts/wait", b"late"])
def test_who_leaves_before_the_answer_is_forgotten_when_it_is_there(
    server: Server, path: bytes
) -> None:
    with server.call(GET % path) as caller:
        server.until(lambda: server.seen)
        connection = server.only()  # a stream may be over soon after
        caller.hang_up()
        server.until(connection._transport.is_closing)
        server.open_gate()
    server.until_idle()
    assert server.seen == (["parts", "ended"] if b"parts" in path else [path.decode()])


def test_who_leaves_unnoticed_is_noticed_in_the_end(server: Server) -> None:
    head = b"GET /parts/quiet HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % MOST
    with server.call(head + bytes(300_000)) as caller:
        server.until(lambda: not server.only()._transport.is_reading())
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


@pytest.mark.parametrize(("path", "came"), [(b"wrong", False), (b"parts/wrong", True)])
def test_an_answer_that_fails_is_cut(server: Server, path: bytes, came: bool) -> None:
    server.logged = ["an answer was cut off"]
    with server.call(GET % path) as caller:
        rest = caller.rest()
        assert (b"one" in rest) == came
        assert b"\r\n0\r\n" not in rest
