"""A client of the decision service.

    with Client("http://127.0.0.1:8000", key="...") as client:
        client.create("shop", ["red", "green"])
        decision = client.decide("shop")
        client.reward("shop", decision.id, 1.0)

Threads may share a client. It waits when the service is busy, and repeats a request that failed if
that is safe: decisions get their ids here, so asking twice still makes one decision.
"""

import math
import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx
from httpx import Response

from driftbandits import check

BUSY = {429, 503}
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
MAYBE_RECEIVED = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
LONGEST_WAIT = 60.0  # seconds; if the service asks for more, the request fails
BATCH_SIZE = 1000
CHECK_ADDRESS = "check that the address is right and a driftbandits service runs there"
REQUEST_FIELDS = ["context", "available", "id"]

Names = Iterable[str]
Context = Sequence[float] | Mapping[str, float]


class Arm(NamedTuple):
    name: str
    retired: bool


class Bandit(NamedTuple):
    """A bandit: its settings and its counts so far."""

    name: str
    policy: str
    context: tuple[str, ...]
    arms: tuple[Arm, ...]
    seed: int
    window: float | None  # seconds
    default_reward: float | None
    reward_range: tuple[float, float]
    noise: float
    horizon: int | None
    max_open: int
    created: float  # unix seconds
    decisions: int | None  # None while no worker has the counts
    rewards: int | None
    expired: int | None
    open: int | None
    worker: str | None


class Decision(NamedTuple):
    """The arm to play, and the probability of each arm."""

    id: str
    arm: str
    probability: float
    probabilities: dict[str, float]


class ServiceError(Exception):
    """An error of the service; its status is 0 without a response, or for one reward of many."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "") -> None:
        super().__init__(status, code, message, remedy)
        self.status, self.code, self.message, self.remedy = status, code, message, remedy

    def __str__(self) -> str:
        kind = f"{self.status} {self.code}" if self.status else self.code
        text = f"{self.message} ({kind})" + (f"; {self.remedy}" if self.remedy else "")
        return " ".join(text.split())


class Outcome(NamedTuple):
    """What became of a reward: learned, duplicate, or refused with an error."""

    id: str
    reward: float | None
    status: str
    error: ServiceError | None = None


class Client:
    """Talks to one service over a pool of connections."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        check.positive(timeout=timeout)
        check.integer(retries=retries, at_least=0)
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            check.fail("url", "an address that starts with http:// or https://", url)
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        self.url, self.retries = url.rstrip("/"), retries
        self._http = httpx.Client(
            transport=transport, base_url=url, headers=headers, timeout=timeout
        )

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def create(
        self, name: str, arms: Names, context: Names = (), policy: str = "tracker", **settings: Any
    ) -> Bandit:
        """Creates a bandit; settings are those of POST /v1/bandits: seed, window, ..."""
        for what, names in {"arms": arms, "context": context}.items():
            if isinstance(names, str):
                check.fail(what, "a list of names", names)
        body = {"name": name, "arms": list(arms), "context": list(context), "policy": policy}
        return as_bandit(self._call("POST", "/v1/bandits", body | settings))

    def bandits(self) -> list[Bandit]:
        return [as_bandit(one) for one in self._call("GET", "/v1/bandits", safe=True)["bandits"]]

    def bandit(self, name: str) -> Bandit:
        return as_bandit(self._call("GET", path(name), safe=True))

    def delete(self, name: str) -> None:
        """Deletes a bandit and its log."""
        self._send("DELETE", path(name))

    def decide(
        self,
        bandit: str,
        context: Context | None = None,
        available: Names | None = None,
        id: str | None = None,
    ) -> Decision:
        """Makes a decision; the same id again gives the same decision."""
        body = as_request({"context": context, "available": available, "id": id})
        return as_decision(self._call("POST", path(bandit, "decisions"), body, safe=True))

    def decide_many(self, bandit: str, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Makes decisions; each request is like `{"context": ..., "available": ..., "id": ...}`."""
        rows = [as_request(request) for request in requests]
        return [as_decision(one) for one in self._in_batches(bandit, "decisions", rows)]

    def reward(self, bandit: str, id: str, reward: float) -> Outcome:
        """Sends a reward. If it had to be sent again, it may be reported as a duplicate."""
        body = {"id": id, "reward": finite("reward", reward)}
        return as_outcome(self._call("POST", path(bandit, "rewards"), body, safe=True))

    def reward_many(self, bandit: str, pairs: Iterable[tuple[str, float]]) -> list[Outcome]:
        """Sends rewards by id, in as many requests as needed; one refusal does not stop others."""
        rows = [{"id": id, "reward": finite("reward", reward)} for id, reward in pairs]
        return [as_outcome(one) for one in self._in_batches(bandit, "rewards", rows)]

    def add_arm(self, bandit: str, name: str) -> Bandit:
        return self._change_arm(bandit, "arms", name)

    def retire_arm(self, bandit: str, name: str) -> Bandit:
        return self._change_arm(bandit, "arms/retire", name, safe=True)

    def restore_arm(self, bandit: str, name: str) -> Bandit:
        return self._change_arm(bandit, "arms/restore", name, safe=True)

    def log(self, bandit: str, format: str = "parquet") -> bytes:
        """The whole log as a Parquet or CSV file."""
        check.known("format", format, ["parquet", "csv"])
        return self._send("GET", f"{path(bandit, 'log')}?format={format}", safe=True).content

    def series(self, bandit: str, points: int = 60) -> dict[str, Any]:
        """The data behind the charts of the bandit's page."""
        return dict(self._call("GET", f"{path(bandit, 'series')}?points={points}", safe=True))

    def _change_arm(self, bandit: str, change: str, name: str, safe: bool = False) -> Bandit:
        return as_bandit(self._call("POST", path(bandit, change), {"name": name}, safe))

    def _in_batches(self, bandit: str, kind: str, rows: list[dict[str, Any]]) -> Iterator[Any]:
        for batch in (rows[at : at + BATCH_SIZE] for at in range(0, len(rows), BATCH_SIZE)):
            yield from self._call("POST", path(bandit, f"{kind}/batch"), {kind: batch}, True)[kind]

    def _call(self, method: str, target: str, body: Any = None, safe: bool = False) -> Any:
        response = self._send(method, target, body, safe)
        try:
            return response.json()
        except ValueError:
            raise as_error(response) from None

    def _send(self, method: str, target: str, body: Any = None, safe: bool = False) -> Response:
        """Retries what was not received or, if that is `safe`, what may have been."""
        repeatable = NEVER_SENT + (MAYBE_RECEIVED if safe else ())
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                response = self._http.request(method, target, json=body)
            except httpx.TransportError as error:
                if last or not isinstance(error, repeatable):
                    message = f"{self.url} did not answer: {str(error) or type(error).__name__}"
                    raise ServiceError(0, "unreachable", message, CHECK_ADDRESS) from error
                wait = wait_after(attempt)
            else:
                if response.is_success:
                    return response
                wait = wait_after(attempt, response.headers.get("Retry-After", ""))
                if last or response.status_code not in BUSY or wait > LONGEST_WAIT:
                    raise as_error(response)
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def path(bandit: str, rest: str = "") -> str:
    """The path of a bandit, whose name may contain any character."""
    if not isinstance(bandit, str) or not bandit:
        check.fail("bandit", "a name", bandit)
    name = quote(bandit, safe="").replace(".", "%2E")  # .. is a name, not the parent folder
    return f"/v1/bandits/{name}/{rest}".rstrip("/")


def finite(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        check.fail(name, "a finite number", value)
    return float(value)


def new_id() -> str:
    """Starts with the time, as ids in order are faster to look up in the log."""
    return f"{time.time_ns() // 1000:013x}{secrets.token_hex(8)}"


def as_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request for a decision; it always has an id."""
    for name in request:
        check.known("field of a request", name, REQUEST_FIELDS)
        if name != "id" and isinstance(request[name], str):
            check.fail(name, "a list", request[name])
    context, available, id = (request.get(name) for name in REQUEST_FIELDS)
    body: dict[str, Any] = {"id": new_id() if id is None else id}
    if isinstance(context, Mapping):
        body["context"] = {name: finite(name, value) for name, value in context.items()}
    elif context is not None:
        body["context"] = [finite("context", value) for value in context]
    if available is not None:
        body["available"] = list(available)
    return body


def as_bandit(answer: Mapping[str, Any]) -> Bandit:
    """Ignores fields that a newer service may add."""
    fields: dict[str, Any] = {name: answer.get(name) for name in Bandit._fields}
    fields["arms"] = tuple(Arm(arm["name"], arm["retired"]) for arm in answer["arms"])
    fields["context"] = tuple(answer["context"])
    fields["reward_range"] = tuple(answer["reward_range"])
    return Bandit(**fields)


def as_decision(answer: Mapping[str, Any]) -> Decision:
    return Decision(*(answer[name] for name in Decision._fields))


def as_outcome(answer: Mapping[str, Any]) -> Outcome:
    if error := answer.get("error"):
        return Outcome(answer["id"], None, "refused", error_from(0, error))
    return Outcome(answer["id"], answer["reward"], answer["status"])


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
    """Seconds, as requested; otherwise longer each time, and random to spread clients."""
    if requested.isdecimal():
        return float(requested)
    return 0.1 * 2.0**attempt * random.uniform(0.5, 1.0)
