"""Answers as they go over the wire."""

from http import HTTPStatus

from driftbandits.service.http import Answer

STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
CONTINUE = STATUS[100] + b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def whole(given: Answer, date: bytes, *, keep: bool, bodiless: bool) -> bytes:
    """Head and body; `keep` leaves the connection open for the next request."""
    lines = lines_of(given, date, keep)
    if given.status != 204:
        lines.append(b"content-length: %d\r\n" % len(given.body))
    lines.append(b"\r\n")
    if not bodiless:
        lines.append(given.body)
    return b"".join(lines)


def head(given: Answer, date: bytes, *, keep: bool, chunks: bool) -> bytes:
    """Of an answer whose parts follow: as chunks or, for old callers, until the close."""
    lines = lines_of(given, date, keep)
    if chunks:
        lines.append(b"transfer-encoding: chunked\r\n")
    return b"".join([*lines, b"\r\n"])


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


def lines_of(given: Answer, date: bytes, keep: bool) -> list[bytes]:
    lines = [STATUS.get(given.status) or b"HTTP/1.1 %d \r\n" % given.status, date]
    lines += [f"{key}: {value}\r\n".encode("latin-1") for key, value in given.headers]
    if given.media is not None:
        lines.append(b"content-type: %s\r\n" % given.media.encode())
    if not keep:
        lines.append(b"connection: close\r\n")
    return lines
