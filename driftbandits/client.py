"""A client of the decision service.

It waits when the service is busy, and repeats a request that failed if that is safe: decisions get
their ids here, so asking twice still makes one decision.
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
    """An arm of a bandit.

    Attributes:
        name: The name of the arm.
        retired: Whether it is no longer chosen.
    """

    name: str
    retired: bool


class Bandit(NamedTuple):
    """A bandit with its settings and its counts so far.

    Attributes:
        name: The name of the bandit.
        policy: The policy with its settings.
        context: The names of the context numbers.
        arms: All arms, including retired ones.
        seed: The random seed.
        window: How many seconds a decision waits for its reward.
        default_reward: The reward that is learned when the window ends.
        reward_range: The lowest and the highest reward.
        context_ranges: The lowest and the highest value of context numbers, by name.
        out_of_range: What happens to a number out of its range: "refuse", "clip" or "accept".
        noise: The sub-Gaussian constant of the rewards.
        horizon: The number of decisions, if known.
        max_open: How many decisions may be open.
        created: When it was created, in unix seconds.
        decisions: The number of decisions. This and the next three are None before it is loaded.
        rewards: The number of rewards.
        expired: The number of decisions that expired.
        open: The number of decisions that wait for a reward.
        worker: The address of the worker that owns it.
    """

    name: str
    policy: str
    context: tuple[str, ...]
    arms: tuple[Arm, ...]
    seed: int
    window: float | None
    default_reward: float | None
    reward_range: tuple[float, float]
    context_ranges: dict[str, tuple[float, float]]
    out_of_range: str
    noise: float
    horizon: int | None
    max_open: int
    created: float
    decisions: int | None
    rewards: int | None
    expired: int | None
    open: int | None
    worker: str | None


class Decision(NamedTuple):
    """A decision of the service.

    Attributes:
        id: The id to send its reward with.
        arm: The name of the arm to play.
        probability: The probability with which it was chosen.
        probabilities: The probabilities of all arms, by name.
    """

    id: str
    arm: str
    probability: float
    probabilities: dict[str, float]


class Outcome(NamedTuple):
    """What happened to a reward.

    Attributes:
        id: The id of the decision.
        reward: The reward, or None if it was refused.
        status: "learned", "duplicate" or "refused".
        error: Why it was refused.
    """

    id: str
    reward: float | None
    status: str
    error: ServiceError | None = None


class Correction(NamedTuple):
    """A reward before and after its correction.

    Attributes:
        id: The id of the decision.
        before: The reward so far, or None if there was none.
        reward: The reward from now on, or None if it was taken back.
    """

    id: str
    before: float | None
    reward: float | None


class Client:
    """A client of one decision service.

    It waits when the service is busy, and repeats a request that failed if that is safe. Threads
    may share a client. Every call raises `ServiceError` if the service refuses it or does not
    answer.

    Args:
        url: The address of the service, with the prefix if it is mounted under one.
        key: The key to send with each request. None sends none.
        timeout: How many seconds to wait for an answer. `create`, `add_arm`, `correct` and
            `delete` wait for up to two minutes.
        retries: How often a request is repeated.
        transport: An httpx transport, for tests.

    Raises:
        InputError: If an argument breaks a rule.

    Example:
        ```python
        from driftbandits import Client

        with Client("http://localhost:8000") as client:
            client.create("shop", ["red", "green"], policy="thompson")
            decision = client.decide("shop")
            print(decision.arm, decision.probability)
            client.reward("shop", decision.id, 1.0)
        ```
    """

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
        """Closes all connections. `with` does this at its end."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def create(
        self, name: str, arms: Names, context: Names = (), policy: str = "tracker", **settings: Any
    ) -> Bandit:
        """Creates a bandit, or returns the one that exists with the same settings.

        The service may have to compile the policy, so this waits longer than other calls.

        Args:
            name: The name of the bandit.
            arms: The names of its arms.
            context: The names of the numbers that come with each decision.
            policy: The name of a policy with its settings, as in "recurrent(energy=0)".
            **settings: The other settings of a bandit, such as `seed`, `window`, `default_reward`
                and `reward_range`.

        Returns:
            The bandit.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("mail", ["red", "green"], policy="thompson")
            ```
        """
        for what, names in {"arms": arms, "context": context}.items():
            if isinstance(names, str):
                check.fail(what, "a list of names", names)
        body = {"name": name, "arms": list(arms), "context": list(context), "policy": policy}
        body |= settings
        made = self._call("POST", "/v1/bandits", body, safe=True, at_least=LONG)
        return as_bandit(made)

    def bandits(self) -> list[Bandit]:
        """Lists all bandits."""
        return [as_bandit(one) for one in self._call("GET", "/v1/bandits", safe=True)["bandits"]]

    def bandit(self, name: str) -> Bandit:
        """Describes the bandit with this name."""
        return as_bandit(self._call("GET", path(name), safe=True))

    def change_settings(
        self,
        name: str,
        *,
        out_of_range: str | None = None,
        context_ranges: Mapping[str, Sequence[float]] | None = None,
    ) -> Bandit:
        """Changes ranges from now on. Past decisions stay as they are.

        Args:
            name: The name of the bandit.
            out_of_range: What happens to a number out of its range: "refuse", "clip" or "accept".
                None changes nothing.
            context_ranges: The lowest and the highest value of context numbers, by name. None
                changes nothing.

        Returns:
            The bandit with its new settings.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("prices", ["red", "green"], policy="thompson")
                print(client.change_settings("prices", out_of_range="clip").out_of_range)
            ```
        """
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
        """Asks for a decision. The same id again gives the same decision.

        Args:
            bandit: The name of the bandit.
            context: The numbers in the order of the context's names, or a mapping by name.
            available: The names of the arms to choose from. None means all that are not retired.
            id: Your own id of the decision. None makes one.

        Returns:
            The decision.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("door", ["red", "green"], policy="thompson")
                decision = client.decide("door", id="visit-1")
                assert client.decide("door", id="visit-1") == decision
            ```
        """
        body = as_request({"context": context, "available": available, "id": id})
        return as_decision(self._call("POST", path(bandit, "decisions"), body, safe=True))

    def decide_many(self, bandit: str, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Asks for many decisions, in batches of up to 1,000.

        Args:
            bandit: The name of the bandit.
            requests: A mapping for each decision, which may have a `context`, the `available` arms
                and an `id`.

        Returns:
            The decisions, in the order of the requests.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("wall", ["red", "green"], policy="thompson")
                made = client.decide_many("wall", [{"id": "visit-1"}, {"available": ["red"]}])
                assert made[1].arm == "red"
            ```
        """
        rows = [as_request(request) for request in requests]
        return [as_decision(one) for one in self._in_batches(bandit, "decisions", rows)]

    def reward(self, bandit: str, id: str, reward: float) -> Outcome:
        """Sends the reward of a decision.

        Args:
            bandit: The name of the bandit.
            id: The id of the decision.
            reward: The reward.

        Returns:
            What happened to it: "learned" or "duplicate". A reward that had to be sent again may
            be reported as a duplicate.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("roof", ["red", "green"], policy="thompson")
                decision = client.decide("roof")
                print(client.reward("roof", decision.id, 1.0).status)
            ```
        """
        body = {"id": id, "reward": finite("reward", reward)}
        return as_outcome(self._call("POST", path(bandit, "rewards"), body, safe=True))

    def reward_many(self, bandit: str, pairs: Iterable[tuple[str, float]]) -> list[Outcome]:
        """Sends many rewards, in batches of up to 1,000.

        Args:
            bandit: The name of the bandit.
            pairs: Pairs of an id and a reward.

        Returns:
            What happened to each reward. One that is refused does not stop the others.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("fence", ["red", "green"], policy="thompson")
                made = client.decide_many("fence", [{}, {}])
                outcomes = client.reward_many("fence", [(each.id, 0.0) for each in made])
                assert [outcome.status for outcome in outcomes] == ["learned", "learned"]
            ```
        """
        rows = [{"id": id, "reward": finite("reward", reward)} for id, reward in pairs]
        return [as_outcome(one) for one in self._in_batches(bandit, "rewards", rows)]

    def correct(self, bandit: str, id: str, reward: float | None) -> Correction:
        """Corrects a reward that was learned. The service rebuilds the learner.

        Args:
            bandit: The name of the bandit.
            id: The id of the decision.
            reward: The right reward. None takes the reward back.

        Returns:
            The reward before and after the correction.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("gate", ["red", "green"], policy="thompson")
                decision = client.decide("gate")
                client.reward("gate", decision.id, 1.0)
                print(client.correct("gate", decision.id, 0.0))
            ```
        """
        body = {"id": id, "reward": None if reward is None else finite("reward", reward)}
        made = self._call("POST", path(bandit, "corrections"), body, safe=True, at_least=LONG)
        return Correction(made["id"], made["before"], made["reward"])

    def add_arm(self, bandit: str, name: str) -> Bandit:
        """Adds an arm, which starts from the prior. The service may have to compile the policy.

        Args:
            bandit: The name of the bandit.
            name: The name of the new arm.

        Returns:
            The bandit with its new arm.
        """
        made = self._call("POST", path(bandit, "arms"), {"name": name}, at_least=LONG)
        return as_bandit(made)

    def retire_arm(self, bandit: str, name: str) -> Bandit:
        """Stops choosing an arm. What was learned about it stays."""
        return self._change_arm(bandit, "retire", name)

    def restore_arm(self, bandit: str, name: str) -> Bandit:
        """Brings back a retired arm."""
        return self._change_arm(bandit, "restore", name)

    def log(self, bandit: str, format: str = "parquet") -> Iterator[bytes]:
        """Downloads the whole log, piece by piece.

        Args:
            bandit: The name of the bandit.
            format: "parquet" or "csv".

        Returns:
            The pieces of the file.
        """
        check.known("format", format, ["parquet", "csv"])
        return self._calls.parts(f"{path(bandit, 'log')}?format={format}")

    def save_log(self, bandit: str, file: str | PathLike[str]) -> None:
        """Downloads the whole log into a file, which appears when it is complete.

        Args:
            bandit: The name of the bandit.
            file: The file to write. Its name ends with .parquet or .csv.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("tree", ["red", "green"], policy="thompson")
                client.save_log("tree", "log.csv")
            ```
        """
        place = Path(file)
        if place.suffix not in (".parquet", ".csv"):
            check.fail("file", "a name that ends with .parquet or .csv", str(file))
        write_atomically(place, self.log(bandit, place.suffix[1:]))

    def series(self, bandit: str, points: int = 60) -> dict[str, Any]:
        """Gets the data of the charts on the bandit's page.

        Args:
            bandit: The name of the bandit.
            points: The number of spans of time.

        Returns:
            The answer of `GET /v1/bandits/NAME/series`.
        """
        return dict(self._call("GET", f"{path(bandit, 'series')}?points={points}", safe=True))

    def _change_arm(self, bandit: str, change: str, name: str) -> Bandit:
        target = path(bandit, f"arms/{change}")
        return as_bandit(self._call("POST", target, {"name": name}, safe=True))

    def _in_batches(self, bandit: str, kind: str, rows: list[dict[str, Any]]) -> Iterator[Any]:
        for batch in (rows[at : at + BATCH_SIZE] for at in range(0, len(rows), BATCH_SIZE)):
            target = path(bandit, f"{kind}/batch")
            yield from self._call("POST", target, {kind: batch}, safe=True)[kind]


def path(bandit: str, rest: str = "") -> str:
    """Makes the path of a bandit, whose name may contain any character."""
    if not isinstance(bandit, str) or not bandit:
        check.fail("bandit", "a name", bandit)
    name = quote(bandit, safe="").replace(".", "%2E")  # .. is a name, not the parent folder
    return f"/v1/bandits/{name}/{rest}".rstrip("/")


def finite(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        check.fail(name, "a finite number", value)
    return float(value)


def new_id() -> str:
    """Makes an id that starts with the time: ids in order are faster to look up in the log."""
    return f"{time.time_ns() // 1000:013x}{secrets.token_hex(8)}"


def as_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the body of a request for a decision, which always has an id."""
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
    """Reads a bandit, without fields that a newer service may add."""
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
