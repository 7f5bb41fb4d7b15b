"""The clients of a soak: mixed traffic that a seed decides, and insists until it is answered."""

import io
import json
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote

import polars as pl

from tests.conftest import SOAK
from tests.service.soak_ledger import (
    Answered,
    Known,
    Ledger,
    as_bytes,
    compare,
    compare_corrections,
    logged_in,
)

BUSY = (429, 503, 504)  # what the service asks to repeat
PATIENCE = 150  # seconds until somebody must have answered
TIMEOUT = 60  # seconds of one request: the service's own, so that creating may compile
THINKING = 0.006  # seconds between two requests, in the mean
ARMS = ["red", "green", "blue"]
NEW_ARMS = ["white", "black, grey"]
FEWEST, MOST = 4, 7  # bandits at a time
OLD = 600 if SOAK else 60  # decisions after which a bandit may be deleted
MOST_TO_REBUILD = 1500  # decisions; a correction goes through the whole log
CONTEXT = {"policy": "tracker", "context": ["age", "hour"]}
TYPES = {
    "n": "number",
    "country": "category(buckets=3)",
    "hour": "cyclic(period=24)",
    "new": "flag",
}
FEATURES = {"topic": "category(buckets=3)", "age": "number"}
ARMS_WITH_FEATURES = {"red": {"topic": "news", "age": 3}, "green": {"age": 0.5}, "blue": None}
TOPICS, COUNTRIES = ["news", "arts", "=sport", None], ["AT", "DE", "🦜", None]
KINDS: dict[str, dict[str, Any]] = {  # of few shapes, as each is compiled
    "plain": {"policy": "thompson"},
    "expiring": {**CONTEXT, "window": 2.0, "default_reward": 0.25},
    "forgetful": {"policy": "ucb", "window": 3.0},
    "clipping é": {**CONTEXT, "out_of_range": "clip"},
    "accepting": {"policy": "thompson", "out_of_range": "accept"},
    "typed": {"policy": "lin_ts", "context": TYPES, "features": FEATURES,
              "arms": ARMS_WITH_FEATURES},
}  # fmt: skip
ODD = ['🦜, "{}"', "=1+{}", "@{}", "'{}'"]  # ids that CSV and spreadsheets might mistake
LASTING = "lasting"  # a bandit that is never deleted nor corrected
COLUMNS = {"id": pl.String, "arm": pl.String, "probability": pl.Float64,
           "reward": pl.Float64, "status": pl.String,
           "corrected_reward": pl.Float64, "corrected_at": pl.Float64}  # fmt: skip
Requests = Mapping[str, tuple[Callable[["Client", Known], None], float]]  # with weights


class Client:
    """One thread, which asks one thing at a time while it has its turn."""

    def __init__(
        self, number: int, seed: int, urls: list[str], ledger: Ledger, requests: Requests
    ) -> None:
        self.number, self.urls, self.ledger, self._requests = number, urls, ledger, requests
        self.rng = random.Random(seed * 1000 + number)
        self.turn = threading.Lock()  # whoever else holds it keeps this client quiet
        self.stopped, self.patience = threading.Event(), PATIENCE
        self._connections: dict[str, HTTPConnection] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopped.set()
        if self._thread.ident:
            self._thread.join(2 * PATIENCE)
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _run(self) -> None:
        kinds, weights = list(self._requests), [each[1] for each in self._requests.values()]
        while not self.stopped.is_set():
            time.sleep(self.rng.expovariate(1 / THINKING))
            kind = self.rng.choices(kinds, weights)[0]
            with self.turn, self.ledger.using(self._choose) as known:
                try:
                    if known:
                        self._requests[kind][0](self, known)
                except Exception:
                    self.ledger.complain(f"{kind}: {traceback.format_exc()}")
                    return

    def _choose(self, bandits: list[Known]) -> Known | None:
        return self.rng.choice(bandits) if bandits else None

    # Requests

    def insist(
        self, kind: str, method: str, path: str, body: Any = None, fine: tuple[int, ...] = (200,)
    ) -> tuple[int, Any]:
        """Status and content of the first answer that is one."""
        asked = time.monotonic()
        while time.monotonic() < asked + self.patience:
            begin = time.perf_counter()
            try:
                status, content = self._ask(method, path, body)
            except (OSError, HTTPException):
                self.ledger.note(kind, "no answer")
                time.sleep(0.05)
                continue
            self.ledger.note(kind, status)
            if status not in BUSY:
                if kind == "decision":
                    self.ledger.seconds.append(time.perf_counter() - begin)
                if status not in fine:
                    self.ledger.complain(f"{kind}: {method} {path} {str(body)[:300]} was answered "
                                         f"{status} {str(content)[:300]}")  # fmt: skip
                return status, content
            time.sleep(0.05)
        raise AssertionError(f"{kind}: {method} {path} was not answered in time")

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        url = self.rng.choice(self.urls)
        if url not in self._connections:
            host = url.removeprefix("http://")
            self._connections[url] = HTTPConnection(host, timeout=TIMEOUT)
        connection = self._connections[url]
        try:
            content = body if isinstance(body, bytes | None) else json.dumps(body)
            connection.request(method, path, content)
            response = connection.getresponse()
            given = response.read()
        except BaseException:
            connection.close()
            raise
        is_json = "json" in (response.getheader("content-type") or "")
        return response.status, json.loads(given) if given and is_json else given

    # What several kinds of requests do

    def open(self, known: Known) -> list[str]:
        """Ids of its own that it left open."""
        return known.open.setdefault(self.number, [])

    def settled(self, known: Known) -> list[str]:
        """Ids of its own that it rewarded."""
        return known.settled.setdefault(self.number, [])

    def new_id(self) -> str:
        id = f"{self.rng.getrandbits(96):024x}"
        return self.rng.choice(ODD).format(id) if self.rng.random() < 0.02 else id

    def new_request(self, known: Known) -> dict[str, Any]:
        context = self.new_context(known)
        return {"id": self.new_id(), **({"context": context} if context else {})}

    def new_context(self, known: Known) -> Any:
        rng = self.rng
        if "features" not in known.body:
            return [round(rng.uniform(-2, 2), 3) for _ in known.body.get("context", [])]
        values = {
            "n": round(rng.gauss(0, 50), 3), "country": rng.choice(COUNTRIES),
            "hour": rng.uniform(0, 24), "new": rng.random() < 0.5,
        }  # fmt: skip
        return {name: value for name, value in values.items() if rng.random() < 0.8}

    def new_features(self) -> dict[str, Any]:
        values = {"topic": self.rng.choice(TOPICS), "age": round(self.rng.expovariate(0.1), 3)}
        return {name: value for name, value in values.items() if self.rng.random() < 0.8}

    def decide(self, known: Known, request: dict[str, Any], kind: str = "decision") -> list[str]:
        """The ids of what was decided: one, the places of a slate, or none."""
        may_fail = request.keys() & {"available", "arms", "k"}  # too many of them may be retired
        fine = (200, 422) if may_fail else (200,)
        status, answer = self.insist(kind, "POST", path(known, "decisions"), request, fine)
        made = answer.get("decisions", [answer]) if status == 200 else []
        for each in made:
            self.remember(known, each)
        return [each["id"] for each in made]

    def remember(self, known: Known, answer: dict[str, Any]) -> None:
        id, probabilities = answer["id"], as_bytes(answer["probabilities"])
        told = Answered(answer["arm"], answer["probability"], probabilities)
        if known.decisions.setdefault(id, told) != told:
            self.ledger.complain(f"{known.name}: {id} is {told}, was {known.decisions[id]}")

    def reward(self, known: Known, id: str, reward: float, kind: str = "reward") -> None:
        fine = (200, 409) if "window" in known.body else (200,)
        body = {"id": id, "reward": reward}
        status, answer = self.insist(kind, "POST", path(known, "rewards"), body, fine)
        self.note_reward(known, id, reward, answer if status == 200 else answer["error"])

    def note_reward(self, known: Known, id: str, reward: float, answer: dict[str, Any]) -> None:
        if "status" in answer:
            known.rewards[id] = reward
            self.settled(known).append(id)
        elif answer["code"] == "expired_decision":
            known.expired.add(id)
        else:
            self.ledger.complain(f"{known.name}: reward {reward} of {id}: {answer}")

    def export(self, known: Known, *, exactly: bool = False) -> None:
        """Fetches the log; it has at least what was acknowledged before it was asked for."""
        format = self.rng.choice(["csv", "parquet"])
        told = known if exactly else known.copy()
        target = path(known, f"log?format={format}")
        _, content = self.insist(f"export {format}", "GET", target)
        read = pl.read_parquet if format == "parquet" else read_csv
        table = read(io.BytesIO(content))
        self.ledger.complain(*compare(told, logged_in(table), exactly=exactly))
        if exactly:
            self.ledger.complain(*compare_corrections(known, table))

    def create(self, name: str, **settings: Any) -> None:
        body = {"name": name, "arms": ARMS, "seed": self.rng.randrange(1000), **settings}
        self.insist("create", "POST", "/v1/bandits", body, (200, 201))
        self.ledger.add(Known(name, body, arms=list(ARMS)))


class Traffic:
    """Some clients."""

    def __init__(self, urls: list[str], seed: int, clients: int, requests: Requests) -> None:
        self.ledger = ledger = Ledger()
        self.clients = [Client(n, seed, urls, ledger, requests) for n in range(clients)]

    def start(self) -> None:
        first = self.clients[0]
        first.create(LASTING, policy="thompson", window=10.0)
        for kind, settings in KINDS.items():
            first.create(f"{kind}-first", **settings)
        for client in self.clients:
            client.start()

    def stop(self) -> None:
        for client in self.clients:
            client.stop()

    def give_up(self) -> None:
        """When nobody answers any more."""
        for client in self.clients:
            client.patience = 0
        self.stop()

    @contextmanager
    def quiet(self) -> Iterator[Client]:
        """Nobody else asks anything meanwhile."""
        for client in self.clients:
            assert client.turn.acquire(timeout=2 * PATIENCE), "a client waits for ever"
        try:
            yield self.clients[0]
        finally:
            for client in self.clients:
                client.turn.release()


def wait_until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def path(known: Known, rest: str = "") -> str:
    return f"/v1/bandits/{quote(known.name, safe='')}/{rest}".rstrip("/")


def read_csv(content: io.BytesIO) -> pl.DataFrame:
    """With the apostrophes off that keep spreadsheets from running a text."""
    table = pl.read_csv(content, columns=list(COLUMNS), schema_overrides=COLUMNS)
    return table.with_columns(pl.col("id", "arm").str.strip_prefix("'"))
