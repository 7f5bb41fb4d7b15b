"""Our HTTP on a real socket: what callers may do, and what they cannot do to others.

After each test no connection is left, no task, and nothing was logged that should not be.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from driftbandits.service import connection
from driftbandits.service.connection import HEAD_BYTES
from driftbandits.service.http import Request

from .raw_http import (
    CHUNKED,
    ECHO,
    GET,
    LARGE,
    MOST,
    PATIENCE,
    Caller,
    Place,
    hasty,
    loop,
    place,
)

__all__ = ["hasty", "loop", "place"]  # fixtures: pytest finds them by name

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
def test_a_body_arrives_in_one_piece_or_byte_by_byte_and_twice(place: Place, kind: str) -> None:
    with place.call(WHOLE[kind] * 2) as caller:
        assert [caller.answer(), caller.answer()] == [(200, b"body")] * 2
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(WHOLE[kind])):
            caller.sendall(WHOLE[kind][i : i + 1])
        assert caller.answer() == (200, b"body")


def test_requests_wait_for_their_turn_and_reading_goes_on(place: Place) -> None:
    with place.call(GET % b"wait" + GET % b"parts" + GET % b"plain" + ECHO) as caller:
        place.until_seen("wait")
        assert not place.only()._transport.is_reading()
        place.open_gate()
        expected = [(200, b"wait"), (200, b"onetwothree"), (200, b"plain"), (200, b"body")]
        assert [caller.answer() for _ in range(3)] == expected[:3]
        caller.sendall(b"Content-Length: 4\r\n\r\nbody")
        assert caller.answer() == expected[3]
        place.until(lambda: place.only()._task is None)
        assert place.only()._coming is None  # nor is its body kept


@pytest.mark.parametrize(("path", "length"), [(b"plain", "5"), (b"parts", None)])
def test_a_head_is_answered_without_a_body(place: Place, path: bytes, length: str | None) -> None:
    with place.call(b"HEAD /%s HTTP/1.1\r\n\r\n" % path + GET % b"plain") as caller:
        status, headers = caller.head()
        assert (status, headers["content-length"]) == (200, length)
        assert caller.answer() == (200, b"plain")


def test_trailers_are_no_headers(place: Place) -> None:
    with place.call(CHUNKED + b"0\r\nSay: no\r\n\r\n" + GET % b"plain") as caller:
        assert [caller.answer(), caller.answer()] == [(200, b"echo"), (200, b"plain")]
    assert Request("GET", b"http://host", {}).path == "/"


def test_who_speaks_an_older_http_is_answered_in_it(place: Place) -> None:
    with place.call(b"GET /parts HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") as caller:
        assert caller.head()[1].keys() == ["date", "connection"]
        assert caller.rest() == b"onetwothree"
    head = b"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"
    with place.call(head + b"Connection: keep-alive\r\n\r\n") as caller:
        place.until(lambda: "echo" in place.seen)
        caller.sendall(b"body")
        assert caller.answer() == (200, b"body")
        assert caller.rest() == b""


def test_after_the_last_request_of_a_connection_it_ends(place: Place) -> None:
    last = b"GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n"
    for data in (last, last + GET % b"never", b"CONNECT plain:1 HTTP/1.1\r\n\r\nnot HTTP"):
        with place.call(data) as caller:
            assert caller.head()[1]["connection"] == "close"
            assert caller.rest() == (b"" if data.startswith(b"CONNECT") else b"plain")
    assert "never" not in place.seen


def test_a_body_is_asked_for_only_if_it_is_wanted(place: Place) -> None:
    expecting = ECHO + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with place.call(expecting % 4) as caller:
        assert caller.head()[0] == 100
        caller.sendall(b"body")
        assert caller.answer() == (200, b"body")
        caller.sendall(expecting.replace(b"echo", b"plain") % 4)
        assert caller.answer() == (200, b"plain")
        assert caller.rest() == b""
    with place.call(expecting % (MOST + 1)) as caller:
        assert caller.answer()[0] == 413


@pytest.mark.parametrize("path", [b"late", b"wait"])
def test_much_is_read_only_when_it_is_wanted(place: Place, path: bytes) -> None:
    head = b"POST /%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path, MOST)
    with place.call(head + bytes(300_000)) as caller:
        place.until(lambda: not place.only()._transport.is_reading())
        place.open_gate()
        caller.sendall(bytes(MOST - 300_000))
        assert caller.answer() == (200, bytes(MOST) if path == b"late" else path)


BAD = {
    "noise": (400, b"\x16\x03\x01\x02"),
    "HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "two lengths": (400, ECHO + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody"),
    "length and chunks": (400, ECHO + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0"),
    "an unknown coding": (400, ECHO + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "a folded line": (400, ECHO + b"Content-Length: 4\r\n 5\r\n\r\nbody"),
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
    place: Place, kind: str, before: bytes
) -> None:
    with place.call(before) as caller:
        assert not before or caller.answer() == (200, b"plain")
        status, data = BAD[kind]
        caller.sendall(data + GET % b"smuggled")
        assert caller.answer()[0] == status
        assert caller.rest() == b""
    assert "smuggled" not in place.seen


def test_a_head_may_be_long(place: Place) -> None:
    long = b"GET /plain HTTP/1.1\r\nSay: %b\r\n\r\n" % (b"a" * (HEAD_BYTES - 100))
    with place.call(long * 3) as caller:
        assert [len(caller.answer()[1]) for _ in range(3)] == [HEAD_BYTES - 100] * 3


@pytest.mark.parametrize("more", [0, 1])
def test_who_stops_talking_may_listen(place: Place, more: int) -> None:
    with place.call(GET % b"wait" + GET % b"parts" * more) as caller:
        caller.shutdown(socket.SHUT_WR)
        place.until(lambda: place.seen and (more or place.only()._ended))
        place.open_gate()
        assert caller.answer() == (200, b"wait")
        assert not more or caller.answer() == (200, b"onetwothree")
        assert caller.rest() == b""


@pytest.mark.parametrize("path", [b"large", b"parts/large"])
def test_an_answer_goes_no_faster_than_it_is_read(place: Place, path: bytes) -> None:
    with place.call(GET % path + GET % b"further") as caller:
        place.until(lambda: place.only()._writable)
        assert "further" not in place.seen
        caller.hang_up()


HALF = {
    "head": b"GET /pl",
    "body": ECHO + b"Content-Length: 9\r\n\r\nbody",
    "chunk": CHUNKED + b"9",
}


@pytest.mark.parametrize("part", HALF)
@pytest.mark.parametrize("leave", [Caller.hang_up, Caller.close, None])
def test_who_leaves_in_the_middle_of_a_request_is_forgotten(
    place: Place, part: str, leave: Callable[[Caller], None] | None
) -> None:
    with place.call(HALF[part]) as caller:
        place.until(lambda: place.connections.open and (place.seen or part == "head"))
        if leave:
            leave(caller)
        else:
            caller.shutdown(socket.SHUT_WR)
            assert caller.rest() == b""


@pytest.mark.parametrize("path", [b"wait", b"parts/wait", b"late"])
def test_who_leaves_before_the_answer_is_forgotten_when_it_is_there(
    place: Place, path: bytes
) -> None:
    with place.call(GET % path) as caller:
        place.until(lambda: place.seen)
        caller.hang_up()
        place.until_lost()
        place.open_gate()
    place.until_idle()
    assert place.seen == (["parts", "ended"] if b"parts" in path else [path.decode()])


def test_who_leaves_unnoticed_is_noticed_in_the_end(place: Place) -> None:
    head = b"GET /parts/quiet HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % MOST
    with place.call(head + bytes(300_000)) as caller:
        place.until(lambda: not place.only()._transport.is_reading())
        caller.hang_up()
        place.open_gate()
    place.until_seen("parts", "ended")
    assert place.seen == ["parts", "ended"]


def test_requests_of_who_left_are_not_begun(place: Place) -> None:
    with place.call(GET % b"wait" + GET % b"never" * 9) as caller:
        place.until_seen("wait")
        caller.hang_up()
        place.open_gate()
        place.until_idle()
    assert place.seen == ["wait"]


@pytest.mark.parametrize(("path", "came"), [(b"wrong", False), (b"parts/wrong", True)])
def test_an_answer_that_fails_is_cut(place: Place, path: bytes, came: bool) -> None:
    place.logged = ["an answer was cut off"]
    with place.call(GET % path) as caller:
        rest = caller.rest()
        assert (b"one" in rest) == came
        assert b"\r\n0\r\n" not in rest


@pytest.mark.parametrize("data", [b"", GET[:9], GET % b"plain", GET % b"plain" + GET[:9]])
def test_a_head_must_come_soon(hasty: Place, data: bytes) -> None:
    with hasty.call(data) as caller:
        assert b"plain" not in data or caller.answer() == (200, b"plain")
        assert caller.rest() == b""


def test_a_later_head_must_come_soon_once_begun(hasty: Place, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection, "KEEP_ALIVE", 2 * PATIENCE)
    with hasty.call(GET % b"plain") as caller:
        assert caller.answer() == (200, b"plain")
        hasty.until(lambda: hasty.only()._task is None)
        caller.sendall(GET[:9])
        assert caller.rest() == b""


@pytest.mark.parametrize("data", [HALF["body"], HALF["chunk"], GET % b"plain" + HALF["body"]])
def test_a_body_must_come_soon(hasty: Place, data: bytes) -> None:
    with hasty.call(data) as caller:
        assert b"plain" not in data or caller.answer() == (200, b"plain")
        assert caller.answer()[0] == 408
        assert caller.rest() == b""
        hasty.until_idle()


@pytest.mark.parametrize("length", [0, 9])
def test_an_answer_must_come_soon(hasty: Place, length: int) -> None:
    """Whether or not all of the request is there; the connection may be used again if it is."""
    data = b"GET /wait HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length
    with hasty.call(data) as caller:
        assert caller.answer() == (503, b"")
        caller.sendall(GET % b"plain")
        assert caller.answer() == (200, b"plain") if length == 0 else caller.rest() == b""


@pytest.mark.parametrize("path", [b"wait", b"parts/wait"])
def test_an_answer_for_nobody_must_come_soon(hasty: Place, path: bytes) -> None:
    with hasty.call(GET % path) as caller:
        hasty.until(lambda: hasty.seen)
        caller.hang_up()
        hasty.until_idle()
    assert hasty.seen in (["wait", "cancelled"], ["parts", "ended"])


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("path", [b"large", b"parts/large"])
def test_an_answer_must_be_read_soon(hasty: Place, path: bytes, waits: bool) -> None:
    """Whether the answer waits for its reader, or is out of hand and only the socket has it."""
    with hasty.call(b""):
        one = hasty.only()
        hasty.loop.call_soon_threadsafe(
            one._transport.set_write_buffer_limits, None if waits else 9 * LARGE
        )
        hasty.loop.call_soon_threadsafe(one.data_received, GET % path)
        hasty.until(lambda: hasty.seen)
        hasty.until_idle()


def test_what_begins_when_time_is_over_is_still_answered(place: Place) -> None:
    with place.call(b"") as caller:
        one = place.only()

        def late() -> None:
            one.data_received(GET % b"plain")
            one.out_of_time()

        place.loop.call_soon_threadsafe(late)
        assert caller.answer() == (200, b"plain")


def test_who_waits_when_it_closes_is_answered_and_nobody_else(place: Place) -> None:
    with place.call(b"") as idle, place.call(GET % b"wait" + GET % b"never") as caller:
        place.until_seen("wait")
        closing = asyncio.run_coroutine_threadsafe(place.connections.close(PATIENCE), place.loop)
        assert idle.rest() == b""
        place.open_gate()
        assert caller.head()[1]["connection"] == "close"
        assert caller.rest() == b"wait"
    closing.result(PATIENCE)
    assert place.seen == ["wait"]


@pytest.mark.parametrize("path", [b"wait", b"parts/wait", b"large"])
def test_closing_has_an_end(place: Place, path: bytes) -> None:
    with place.call(GET % path):
        place.until(lambda: place.seen)
        place.run(place.connections.close(0.0))
        place.until_idle()
    assert place.seen in (["wait", "cancelled"], ["parts", "ended"], ["large"])
