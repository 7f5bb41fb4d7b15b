"""A client of the decision service.

    with Client("http://127.0.0.1:8000", key="...") as client:
        client.create("shop", ["red", "green"])
        decision = client.decide("shop")
        client.reward("shop", decision.id, 1.0)

One client serves several threads. It waits for a busy service as long as that asks, and repeats a
broken request where that does no harm: a decision has its id before it is asked for.
"""

import math
import random
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx
from httpx import Response

from driftbandits import check

BUSY = {429, 503}
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
BROKEN = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
LONGEST_WAIT = 60.0  # seconds; who asks for more gets no second request
AT_ONCE = 1000
REQUEST = ["context", "available", "id"]

Names = Iterable[str]
Context = Sequence[float] | Mapping[str, float]


class Arm(NamedTuple):
    """An arm of a bandit."""

    name: str
    retired: bool


class Bandit(NamedTuple):
    """A bandit: its settings and what happened so far."""

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
    decisions: int | None  # none while its worker cannot be asked
    rewards: int | None
    expired: int | None
    open: int | None
    worker: str | None


class Decision(NamedTuple):
    """The arm to play, and how likely each arm was."""

    id: str
    arm: str
    probability: float
    probabilities: dict[str, float]


class ServiceError(Exception):
    """The service refused; status 0: it gave no answer, or it is one of several refusals."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "") -> None:
        super().__init__(status, code, message, remedy)
        self.status, self.code, self.message, self.remedy = status, code, message, remedy

    def __str__(self) -> str:
        kind = f"{self.status} {self.code}" if self.status else self.code
        told = f"{self.message} ({kind})" + (f"; {self.remedy}" if self.remedy else "")
        return " ".join(told.split())


class Outcome(NamedTuple):
    """What became of a reward: learned, duplicate, or refused and then with the error."""

    id: str
    reward: float | None
    status: str
    error: ServiceError | None = None


class Client:
    """Talks to one service over one pool of connections."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        check.positive(timeout=timeout)
        check.whole(retries=retries, at_least=0)
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            check.fail("url", "an address that begins with http:// or https://", url)
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
        """A new bandit; with settings as in POST /v1/bandits: seed, window, ..."""
        for what, names in {"arms": arms, "context": context}.items():
            if isinstance(names, str):
                check.fail(what, "a list of names", names)
        body = {"name": name, "arms": list(arms), "context": list(context), "policy": policy}
        return as_bandit(self._ask("POST", "/v1/bandits", body | settings))

    def bandits(self) -> list[Bandit]:
        return [as_bandit(one) for one in self._ask("GET", "/v1/bandits", safe=True)["bandits"]]

    def bandit(self, name: str) -> Bandit:
        return as_bandit(self._ask("GET", path(name), safe=True))

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
        """One decision; the same id again gives the same decision."""
        body = as_request({"context": context, "available": available, "id": id})
        return as_decision(self._ask("POST", path(bandit, "decisions"), body, safe=True))

    def decide_many(self, bandit: str, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Decisions, each asked for like `{"context": ..., "available": ..., "id": ...}`."""
        rows, made = [as_request(request) for request in requests], []
        for start in range(0, len(rows), AT_ONCE):
            body = {"decisions": rows[start : start + AT_ONCE]}
            answer = self._ask("POST", path(bandit, "decisions/batch"), body, safe=True)
            made += [as_decision(one) for one in answer["decisions"]]
        return made

    def reward(self, bandit: str, id: str, reward: float) -> Outcome:
        """The reward of a decision. After a broken connection it may be told as a duplicate."""
        body = {"id": id, "reward": finite("reward", reward)}
        return as_outcome(self._ask("POST", path(bandit, "rewards"), body, safe=True))

    def reward_many(self, bandit: str, pairs: Iterable[tuple[str, float]]) -> list[Outcome]:
        """Rewards by id, in as many requests as it takes; one that is refused stops no other."""
        rows = [{"id": id, "reward": finite("reward", reward)} for id, reward in pairs]
        outcomes = []
        for start in range(0, len(rows), AT_ONCE):
            body = {"rewards": rows[start : start + AT_ONCE]}
            answer = self._ask("POST", path(bandit, "rewards/batch"), body, safe=True)
            outcomes += [as_outcome(one) for one in answer["rewards"]]
        return outcomes

    def add_arm(self, bandit: str, name: str) -> Bandit:
        return as_bandit(self._ask("POST", path(bandit, "arms"), {"name": name}))

    def retire_arm(self, bandit: str, name: str) -> Bandit:
        return as_bandit(self._ask("POST", path(bandit, "arms/retire"), {"name": name}, safe=True))

    def restore_arm(self, bandit: str, name: str) -> Bandit:
        return as_bandit(self._ask("POST", path(bandit, "arms/restore"), {"name": name}, safe=True))

    def log(self, bandit: str, format: str = "parquet") -> bytes:
        """The whole log as a Parquet or CSV file."""
        check.known("format", format, ["parquet", "csv"])
        return self._send("GET", f"{path(bandit, 'log')}?format={format}", safe=True).content

    def series(self, bandit: str, points: int = 60) -> dict[str, Any]:
        """What the page of the bandit draws, as the service tells it."""
        return dict(self._ask("GET", f"{path(bandit, 'series')}?points={points}", safe=True))

    def _ask(self, method: str, where: str, body: Any = None, safe: bool = False) -> Any:
        response = self._send(method, where, body, safe)
        try:
            return response.json()
        except ValueError:
            raise error_of(response) from None

    def _send(self, method: str, where: str, body: Any = None, safe: bool = False) -> Response:
        """One request, and again where that helps; `safe`: the second does no harm."""
        for turn in range(self.retries + 1):
            last = turn == self.retries
            try:
                response = self._http.request(method, where, json=body)
            except httpx.TransportError as error:
                again = isinstance(error, NEVER_SENT) or (safe and isinstance(error, BROKEN))
                if last or not again:
                    raise self._unreachable(error) from error
                time.sleep(backoff(turn))
                continue
            if response.is_success:
                return response
            pause = wait_of(response, turn)
            if last or response.status_code not in BUSY or pause > LONGEST_WAIT:
                raise error_of(response)
            time.sleep(pause)
        raise AssertionError("the last turn returns or raises")

    def _unreachable(self, error: Exception) -> ServiceError:
        message = f"{self.url} did not answer: {str(error) or type(error).__name__}"
        remedy = "check that the service runs and that the address is right"
        return ServiceError(0, "unreachable", message, remedy)


def path(bandit: str, rest: str = "") -> str:
    """The path of a bandit, whose name may hold anything."""
    if not isinstance(bandit, str) or not bandit:
        check.fail("bandit", "a name", bandit)
    name = quote(bandit, safe="").replace(".", "%2E")  # a name of dots is not a folder above
    return f"/v1/bandits/{name}/{rest}".rstrip("/")


def finite(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        check.fail(name, "a finite number", value)
    return float(value)


def new_id() -> str:
    """Random, after the time: ids in its order are quicker to look up in a log."""
    return f"{time.time_ns() // 1000:013x}{secrets.token_hex(8)}"


def as_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """A decision's request, with an id of its own."""
    for name in request:
        check.known("field of a request", name, REQUEST)
    id, context, available = (request.get(name) for name in ("id", "context", "available"))
    for name in ("context", "available"):
        if isinstance(request.get(name), str):
            check.fail(name, "a list", request[name])
    body: dict[str, Any] = {"id": new_id() if id is None else id}
    if isinstance(context, Mapping):
        body["context"] = {name: finite(name, value) for name, value in context.items()}
    elif context is not None:
        body["context"] = [finite("context", value) for value in context]
    if available is not None:
        body["available"] = list(available)
    return body


def as_bandit(answer: Mapping[str, Any]) -> Bandit:
    """Fields that a newer service adds are left out."""
    fields: dict[str, Any] = {name: answer.get(name) for name in Bandit._fields}
    fields["arms"] = tuple(Arm(arm["name"], arm["retired"]) for arm in answer["arms"])
    fields["context"] = tuple(answer["context"])
    fields["reward_range"] = tuple(answer["reward_range"])
    return Bandit(**fields)


def as_decision(answer: Mapping[str, Any]) -> Decision:
    return Decision(*(answer[name] for name in Decision._fields))


def as_outcome(answer: Mapping[str, Any]) -> Outcome:
    if error := answer.get("error"):
        refusal = ServiceError(0, error["code"], error["message"], error.get("remedy", ""))
        return Outcome(answer["id"], None, "refused", refusal)
    return Outcome(answer["id"], answer["reward"], answer["status"])


def error_of(response: Response) -> ServiceError:
    status = response.status_code
    try:
        told = response.json()["error"]
        return ServiceError(status, told["code"], told["message"], told.get("remedy", ""))
    except (ValueError, LookupError, TypeError, AttributeError):  # not from the service: a proxy
        message = f"{response.url} answered {status} {response.reason_phrase}".rstrip()
        remedy = "check that the address is that of a driftbandits service"
        return ServiceError(status, f"http_{status}", message, remedy)


def wait_of(response: Response, turn: int) -> float:
    """Seconds that the service asks for."""
    asked = response.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else backoff(turn)


def backoff(turn: int) -> float:
    """Longer each time, and not the same for everybody."""
    return 0.1 * 2.0**turn * random.uniform(0.5, 1.0)
