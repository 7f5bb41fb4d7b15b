"""Requests on a real socket: what is read, and what is refused and read no further."""

import json
import socket

import pytest

from driftbandits.service.http.connection import MAX_HEAD_BYTES, MAX_PIPELINED
from tests.service.http.raw_http import (
    CHUNKED,
    ECHO,
    GET,
    MOST,
    Server,
    patient,
    server,
)

__all__ = ["patient", "server"]  # fixtures: pytest finds them by name


WHOLE = {
    "with a length": ECHO + b"Content-Length: 4\r\n\r\nbody",
    "in chunks": CHUNKED + b"1;x=y\r\nb\r\n3\r\nody\r\n0\r\nTrailer: 1\r\n\r\n",
    "with an upgrade": ECHO + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAMAAABk\r\nContent-Length: 4\r\n\r\nbody",
    "with an upgrade, in chunks": ECHO + b"Connection: upgrade\r\nUpgrade: websocket\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    "with half an upgrade": ECHO + b"Upgrade: h2c\r\nContent-Length: 4\r\n\r\nbody",
    "with the host in its target": ECHO.replace(b"/echo", b"http://a/echo")
    + b"Content-Length: 4\r\n\r\nbody",
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_a_body_arrives_in_one_piece_or_byte_by_byte_and_twice(server: Server, kind: str) -> None:
    with server.call(WHOLE[kind] * 2) as caller:
        assert [caller.answer(), caller.answer()] == [(200, b"body")] * 2
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(WHOLE[kind])):
            caller.sendall(WHOLE[kind][i : i + 1])
        assert caller.answer() == (200, b"body")


def test_many_upgrades_are_one_request_each(server: Server) -> None:
    """In one piece, and as many as may be."""
    upgrade = b"GET /plain HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    with server.call(upgrade * MAX_PIPELINED + GET % b"last") as caller:
        assert {caller.answer() for _ in range(MAX_PIPELINED)} == {(200, b"plain")}
        assert caller.answer() == (200, b"last")


def test_not_too_many_requests_may_wait(server: Server) -> None:
    """Those that wait are answered, and the connection ends."""
    with server.call(GET % b"plain" * 9 * MAX_PIPELINED) as caller:
        assert caller.rest().count(b"plain") == MAX_PIPELINED + 2


def test_trailers_are_no_headers(server: Server) -> None:
    with server.call(CHUNKED + b"0\r\nSay: no\r\n\r\n" + GET % b"plain") as caller:
        assert [caller.answer(), caller.answer()] == [(200, b"echo"), (200, b"plain")]


def test_a_body_is_asked_for_only_if_it_is_wanted(server: Server) -> None:
    expecting = ECHO + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with server.call(expecting % 4) as caller:
        assert caller.head()[0] == 100
        caller.sendall(b"body")
        assert caller.answer() == (200, b"body")
        caller.sendall(expecting.replace(b"echo", b"plain") % 4)
        assert caller.answer() == (200, b"plain")
    with server.call(expecting % (MOST + 1)) as caller:
        assert caller.answer()[0] == 413


@pytest.mark.parametrize("path", [b"late", b"wait"])
def test_much_is_read_only_when_it_is_wanted(server: Server, path: bytes) -> None:
    head = b"POST /%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path, MOST)
    with server.call(head + bytes(300_000)) as caller:
        server.until(lambda: server.only().flow.read_paused)
        server.open_gate()
        caller.sendall(bytes(MOST - 300_000))
        assert caller.answer() == (200, bytes(MOST) if path == b"late" else path)


BAD = {
    "noise": (400, b"\x16\x03\x01\x02"),
    "HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "two lengths": (400, ECHO + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody"),
    "length and chunks": (400, ECHO + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0"),
    "an unknown coding": (400, ECHO + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "a folded line": (400, ECHO + b"Content-Length: 4\r\n 5\r\n\r\nbody"),
    "a tunnel": (400, b"CONNECT plain:1 HTTP/1.1\r\n\r\n"),
    "a target without a path": (400, b"GET http://host HTTP/1.1\r\n\r\n"),
    "a bad target": (400, b"GET http://[ HTTP/1.1\r\n\r\n"),
    "a bad chunk": (400, CHUNKED + b"4\r\nbody\r\nmany\r\n"),
    "a long target": (431, b"GET /" + b"a" * MOST),
    "a long header": (431, b"GET / HTTP/1.1\r\na: " + b"a" * MOST),
    "many headers": (431, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (MOST // 6)),
    "a long trailer": (431, CHUNKED + b"0\r\na: " + b"a" * MOST),
    "a long body": (413, CHUNKED + b"10000\r\n%b\r\n" % bytes(65_536) * 20),
}  # fmt: skip


@pytest.mark.parametrize("before", [b"", GET % b"plain"])
@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_read_is_refused_and_read_no_further(
    server: Server, kind: str, before: bytes
) -> None:
    with server.call(before) as caller:
        assert not before or caller.answer() == (200, b"plain")
        status, data = BAD[kind]
        caller.sendall(data + GET % b"smuggled")
        got, body = caller.answer()
        assert got == status
        assert json.loads(body)["error"].keys() == {"code", "message", "remedy"}
        assert caller.rest() == b""
    assert "smuggled" not in server.seen


def test_a_head_may_be_long(server: Server) -> None:
    long = b"GET /plain HTTP/1.1\r\nSay: %b\r\n\r\n" % (b"a" * (MAX_HEAD_BYTES - 100))
    with server.call(long * 3) as caller:
        assert [len(caller.answer()[1]) for _ in range(3)] == [MAX_HEAD_BYTES - 100] * 3
