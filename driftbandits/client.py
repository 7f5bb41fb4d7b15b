"""A client of the decision service.

    with Client("http://127.0.0.1:8000", key="...") as client:
        client.create("shop", ["red", "green"])
        decision = client.decide("shop")
        client.reward("shop", decision.id, 1.0)

Threads may share a client. It waits when the service is busy, and repeats a request that failed if
that is safe: decisions get their ids here, so asking twice still makes one decision.
"""

import math
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx

from driftbandits import check
from driftbandits.atomic_file import write_atomically
from driftbandits.service_calls import ServiceCalls, ServiceError, error_from

BATCH_SIZE = 1000
LONG = 120.0  # seconds, for what compiles or deletes much; the service gives up after 60
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
    context_ranges: dict[str, tuple[float, float]]  # by name
    out_of_range: str  # refuse, clip or accept
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


class Outcome(NamedTuple):
    """What became of a reward: learned, duplicate, or refused with an error."""

    id: str
    reward: float | None
    status: str
    error: ServiceError | None = None


class Correction(NamedTuple):
    """A reward, as it was and as it is now; None where it was taken back, or never came."""

    id: str
    before: float | None
    reward: float | None


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
        self.url, self.retries = url.rstrip("/"), retries
        self._calls = ServiceCalls(self.url, key, timeout, retries, transport)
        self._call = self._calls.json

    def close(self) -> None:
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def create(
        self, name: str, arms: Names, context: Names = (), policy: str = "tracker", **settings: Any
    ) -> Bandit:
        """Creates a bandit; settings are those of POST /v1/bandits: seed, window, ...

        One that exists with the same settings is as good as new. The service may have to compile
        its policy, so this waits longer than other calls.
        """
        for what, names in {"arms": arms, "context": context}.items():
            if isinstance(names, str):
                check.fail(what, "a list of names", names)
        body = {"name": name, "arms": list(arms), "context": list(context), "policy": policy}
        body |= settings
        made = self._call("POST", "/v1/bandits", body, safe=True, at_least=LONG)
        return as_bandit(made)

    def bandits(self) -> list[Bandit]:
        return [as_bandit(one) for one in self._call("GET", "/v1/bandits", safe=True)["bandits"]]

    def bandit(self, name: str) -> Bandit:
        return as_bandit(self._call("GET", path(name), safe=True))

    def change_settings(
        self,
        name: str,
        *,
        out_of_range: str | None = None,
        context_ranges: Mapping[str, Sequence[float]] | None = None,
    ) -> Bandit:
        """Changes one of them or both, for what comes in from now on."""
        body: dict[str, Any] = {} if out_of_range is None else {"out_of_range": out_of_range}
        if context_ranges is not None:
            body["context_ranges"] = {key: list(ends) for key, ends in context_ranges.items()}
        return as_bandit(self._call("PATCH", path(name), body, safe=True))

    def delete(self, name: str) -> None:
        """Deletes a bandit and its log."""
        self._calls.send("DELETE", path(name), at_least=LONG)

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

    def correct(self, bandit: str, id: str, reward: float | None) -> Correction:
        """Corrects a reward that was learned, or takes it back (None); the learner is rebuilt."""
        body = {"id": id, "reward": None if reward is None else finite("reward", reward)}
        made = self._call("POST", path(bandit, "corrections"), body, safe=True, at_least=LONG)
        return Correction(made["id"], made["before"], made["reward"])

    def add_arm(self, bandit: str, name: str) -> Bandit:
        """Adds an arm; like `create`, this may take a while."""
        made = self._call("POST", path(bandit, "arms"), {"name": name}, at_least=LONG)
        return as_bandit(made)

    def retire_arm(self, bandit: str, name: str) -> Bandit:
        return self._change_arm(bandit, "retire", name)

    def restore_arm(self, bandit: str, name: str) -> Bandit:
        return self._change_arm(bandit, "restore", name)

    def log(self, bandit: str, format: str = "parquet") -> Iterator[bytes]:
        """The whole log as a Parquet or CSV file, piece by piece."""
        check.known("format", format, ["parquet", "csv"])
        return self._calls.parts(f"{path(bandit, 'log')}?format={format}")

    def save_log(self, bandit: str, file: str | PathLike[str]) -> None:
        """Writes the whole log to a file, which is there when it is complete."""
        place = Path(file)
        if place.suffix not in (".parquet", ".csv"):
            check.fail("file", "a name that ends with .parquet or .csv", str(file))
        write_atomically(place, self.log(bandit, place.suffix[1:]))

    def series(self, bandit: str, points: int = 60) -> dict[str, Any]:
        """The data behind the charts of the bandit's page."""
        return dict(self._call("GET", f"{path(bandit, 'series')}?points={points}", safe=True))

    def _change_arm(self, bandit: str, change: str, name: str) -> Bandit:
        target = path(bandit, f"arms/{change}")
        return as_bandit(self._call("POST", target, {"name": name}, safe=True))

    def _in_batches(self, bandit: str, kind: str, rows: list[dict[str, Any]]) -> Iterator[Any]:
        for batch in (rows[at : at + BATCH_SIZE] for at in range(0, len(rows), BATCH_SIZE)):
            target = path(bandit, f"{kind}/batch")
            yield from self._call("POST", target, {kind: batch}, safe=True)[kind]


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
    ranges = answer.get("context_ranges", {})
    fields["context_ranges"] = {name: tuple(ends) for name, ends in ranges.items()}
    return Bandit(**fields)


def as_decision(answer: Mapping[str, Any]) -> Decision:
    return Decision(*(answer[name] for name in Decision._fields))


def as_outcome(answer: Mapping[str, Any]) -> Outcome:
    if error := answer.get("error"):
        return Outcome(answer["id"], None, "refused", error_from(0, error))
    return Outcome(answer["id"], answer["reward"], answer["status"])
