"""Calls to a service over HTTP, which are repeated where that is safe.

A call waits for a busy service. A request that was not received is sent again. One that may have
been received is sent again only if that does no harm.
"""

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from httpx import Response

BUSY = {429, 503}
MAYBE_BUSY = {*BUSY, 504}  # it may have been received
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
MAYBE_RECEIVED = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
LONGEST_WAIT = 60.0  # seconds; if the service asks for more, the request fails
CHECK_ADDRESS = "check that the address is right and a driftbandits service runs there"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServiceError(Exception):
    """An error that the service answered, or that there was no answer.

    Attributes:
        status: The HTTP status. It is 0 without an answer, and for one reward of a batch.
        code: A short name of the error, for programs.
        message: What went wrong, for people.
        remedy: What helps.

    Example:
        ```python
        from driftbandits import Client, ServiceError

        with Client("http://localhost:8000") as client:
            try:
                client.bandit("nobody")
            except ServiceError as error:
                assert (error.status, error.code) == (404, "unknown_bandit")
                print(error.message, "-", error.remedy)
        ```
    """

    def __init__(self, status: int, code: str, message: str, remedy: str = "") -> None:
        super().__init__(status, code, message, remedy)
        self.status, self.code, self.message, self.remedy = status, code, message, remedy

    def __str__(self) -> str:
        kind = f"{self.status} {self.code}" if self.status else self.code
        text = f"{self.message} ({kind})" + (f"; {self.remedy}" if self.remedy else "")
        return " ".join(text.split())


class ServiceCalls:
    """One service, over a pool of connections."""

    def __init__(
        self,
        url: str,
        key: str | None,
        timeout: float,
        retries: int,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self._url, self._retries, self._timeout = url, retries, timeout
        self._http = httpx.Client(
            transport=transport,
            base_url=url,
            headers={"Authorization": f"Bearer {key}"} if key is not None else {},
            timeout=timeout,
            verify=httpx.create_ssl_context(),
            trust_env=httpx.URL(url).host not in LOOPBACK,  # a proxy would be another machine
        )

    def close(self) -> None:
        self._http.close()

    def json(self, method: str, target: str, body: Any = None, **options: Any) -> Any:
        """Sends a request and returns the answer; the options are those of `send`."""
        response = self.send(method, target, body, **options)
        try:
            return response.json()
        except ValueError:
            raise as_error(response) from None

    def parts(self, target: str) -> Iterator[bytes]:
        """Yields a file piece by piece; raises ServiceError if the file is cut off."""
        response = self.send("GET", target, safe=True, stream=True)
        try:
            yield from response.iter_bytes()
        except httpx.TransportError as error:
            message = f"{self._url} cut off the file: {str(error) or type(error).__name__}"
            raise ServiceError(0, "cut_off", message, "ask for it again") from error
        finally:
            response.close()

    def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        safe: bool = False,
        stream: bool = False,
        at_least: float = 0.0,
    ) -> Response:
        """Sends a request, and waits for the answer for `at_least` so many seconds."""
        timeout = httpx.Timeout(max(at_least, self._timeout), connect=self._timeout)
        for attempt in range(self._retries + 1):
            request = self._http.build_request(method, target, json=body, timeout=timeout)
            last = attempt == self._retries
            try:
                response = self._http.send(request, stream=stream)
                if response.is_success:
                    return response
                response.read()
            except httpx.TransportError as error:
                if last or not isinstance(error, NEVER_SENT + (MAYBE_RECEIVED if safe else ())):
                    message = f"{self._url} did not answer: {str(error) or type(error).__name__}"
                    raise ServiceError(0, "unreachable", message, CHECK_ADDRESS) from error
                wait = wait_after(attempt)
            else:
                wait = wait_after(attempt, response.headers.get("Retry-After", ""))
                busy = response.status_code in (MAYBE_BUSY if safe else BUSY)
                if last or not busy or wait > LONGEST_WAIT:
                    raise as_error(response)
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def as_error(response: Response) -> ServiceError:
    status = response.status_code
    try:
        return error_from(status, response.json()["error"])
    except (ValueError, LookupError, TypeError, AttributeError):  # from a proxy or another server
        message = f"{response.url} answered {status} {response.reason_phrase}".rstrip()
        return ServiceError(status, f"http_{status}", message, CHECK_ADDRESS)


def error_from(status: int, error: Mapping[str, Any]) -> ServiceError:
    return ServiceError(status, error["code"], error["message"], error.get("remedy", ""))


def wait_after(attempt: int, requested: str = "") -> float:
    """Seconds to wait: as requested, or longer each time and random, to spread clients."""
    if requested.isdecimal():
        return float(requested)
    return 0.1 * 2.0**attempt * random.uniform(0.5, 1.0)
