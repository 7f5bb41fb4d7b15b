"""A client of the decision service.

It waits when the service is busy, and repeats a request that failed if that is safe: decisions get
their ids here, so asking twice still makes one decision.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

from driftbandits import check
from driftbandits.atomic_file import write_atomically
from driftbandits.client_batches import batches
from driftbandits.client_messages import (
    Bandit,
    Correction,
    Outcome,
    as_arms,
    as_bandit,
    as_columns,
    as_outcome,
    as_request,
    as_slates,
    as_values,
    finite,
)
from driftbandits.service_calls import ServiceCalls

LONG = 120.0  # seconds, for what compiles or deletes much; the service gives up after 60

Names = Iterable[str]
Context = Sequence[float] | Mapping[str, Any]


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
        self,
        name: str,
        arms: Names | Mapping[str, Context | None],
        context: Names | Mapping[str, Any] = (),
        policy: str = "tracker",
        *,
        features: Names | Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Bandit:
        """Creates a bandit, or returns the one that exists with the same settings.

        The service may have to compile the policy, so this waits longer than other calls.

        Args:
            name: The name of the bandit.
            arms: The names of its arms, or a mapping of names to the features of each arm, or to
                None if they are not known.
            context: The names of the numbers that come with each decision, or a schema: a mapping
                of names to `number()`, `category()`, `cyclic()`, `flag()`, or to their texts.
            policy: The name of a policy with its settings, as in "recurrent(energy=0)".
            features: The names of the features of arms, or a schema. None takes the names of the
                first arm's.
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
        for what, names in {"arms": arms, "context": context, "features": features}.items():
            if isinstance(names, str):
                check.fail(what, "a list of names", names)
        body = {"name": name, "arms": as_arms(arms), "policy": policy, **settings}
        body["context"] = as_columns(context)
        if features is not None:
            body["features"] = as_columns(features)
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
        *,
        arms: Mapping[str, Context | None] | None = None,
        k: int | None = None,
    ) -> Any:
        """Asks for a decision. The same id again gives the same decision.

        Args:
            bandit: The name of the bandit.
            context: The numbers in the order of the context's names, or a mapping by name.
            available: The names of the arms to choose from. None means all that are not retired.
            id: Your own id of the decision, or of the slate. None makes one.
            arms: The arms to choose from, instead of `available`, with features that count for this
                decision only, or None for those that the arm has.
            k: How many arms to choose, all different, for a slate. None chooses one.

        Returns:
            The decision; with `k`, the list of decisions, one for each place.

        Example:
            ```python
            from driftbandits import Client

            with Client("http://localhost:8000") as client:
                client.create("door", ["red", "green"], policy="thompson")
                decision = client.decide("door", id="visit-1")
                assert client.decide("door", id="visit-1") == decision
            ```
        """
        given = {"context": context, "available": available, "id": id, "arms": arms, "k": k}
        body = as_request(given)
        made = self._call("POST", path(bandit, "decisions"), body, safe=True)
        return as_slates(iter([made] if k is None else made["decisions"]), [body])[0]

    def decide_many(self, bandit: str, requests: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Asks for many decisions, in batches of up to 1,000.

        Batches are smaller where requests are large or bring many arms. If a batch is refused,
        the decisions of those before it stay.

        Args:
            bandit: The name of the bandit.
            requests: A mapping for each decision, which may have a `context`, the `available` arms,
                an `id`, `arms` of its own, and `k`.

        Returns:
            The decisions, in the order of the requests. For a request with `k`, it is a list.

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
        return as_slates(self._in_batches(bandit, "decisions", rows), rows)

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

    def add_arm(self, bandit: str, name: str, features: Context | None = None) -> Bandit:
        """Adds an arm, which starts from the prior. The service may have to compile the policy.

        Args:
            bandit: The name of the bandit.
            name: The name of the new arm.
            features: Its features, from which a policy may know what to expect of it.

        Returns:
            The bandit with its new arm.
        """
        body = {"name": name}
        if features is not None:
            body["features"] = as_values("features", features)
        return as_bandit(self._call("POST", path(bandit, "arms"), body, at_least=LONG))

    def set_features(self, bandit: str, name: str, features: Context) -> Bandit:
        """Replaces the features of an arm. What was learned about the arm stays.

        Features that are the same as before change nothing.

        Args:
            bandit: The name of the bandit.
            name: The name of the arm.
            features: All of its features from now on; what is left out is not kept, but missing.

        Returns:
            The bandit.
        """
        body = {"name": name, "features": as_values("features", features)}
        return as_bandit(self._call("POST", path(bandit, "arms/features"), body, safe=True))

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
        for batch in batches(rows):
            target = path(bandit, f"{kind}/batch")
            yield from self._call("POST", target, {kind: batch}, safe=True)[kind]


def path(bandit: str, rest: str = "") -> str:
    """Makes the path of a bandit, whose name may contain any character."""
    if not isinstance(bandit, str) or not bandit:
        check.fail("bandit", "a name", bandit)
    name = quote(bandit, safe="").replace(".", "%2E")  # .. is a name, not the parent folder
    return f"/v1/bandits/{name}/{rest}".rstrip("/")
