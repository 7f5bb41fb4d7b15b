"""Responses as bytes on the wire."""

from http import HTTPStatus

from driftbandits.service.http.protocol import Response

STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
CONTINUE = STATUS_LINES[100] + b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def response_bytes(response: Response, date: bytes, *, keep_alive: bool, with_body: bool) -> bytes:
    """Head and body of a response."""
    lines = head_lines(response, date, keep_alive)
    if response.status != 204:
        lines.append(b"content-length: %d\r\n" % len(response.body))
    lines.append(b"\r\n")
    if with_body:
        lines.append(response.body)
    return b"".join(lines)


def stream_head(response: Response, date: bytes, *, keep_alive: bool, chunked: bool) -> bytes:
    """Head of a streamed response; without chunks, the end of the connection ends it."""
    lines = head_lines(response, date, keep_alive)
    if chunked:
        lines.append(b"transfer-encoding: chunked\r\n")
    return b"".join([*lines, b"\r\n"])


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


def head_lines(response: Response, date: bytes, keep_alive: bool) -> list[bytes]:
    status = response.status
    lines = [STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status, date]
    lines += [f"{key}: {value}\r\n".encode("latin-1") for key, value in response.headers]
    if response.content_type is not None:
        lines.append(b"content-type: %s\r\n" % response.content_type.encode())
    if not keep_alive:
        lines.append(b"connection: close\r\n")
    return lines
