"""python -m benchmarks.fairness: how long an ordinary bandit waits while others are hard at work.

A bandit (`thompson`, ten arms) is asked for a decision fifty times a second, whether or not it has
answered the last question. Meanwhile another caller does what used to stop everybody. Prints
percentiles of the time from when a question was due to its answer. With `--before REVISION`, the
same for an older tree, case by case in the same run.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.revisions import ROOT, tree_of
from benchmarks.service import ARMS, Serving, service

EVERY = 0.02  # seconds between two questions
CALLERS = 32  # who wait at the same time; more are late with their questions
LEAST = 5.0  # seconds that a case is watched for
BATCH = 1000


class Sizes(NamedTuple):
    """How much is asked for."""

    arms: int = 200  # of the bandit whose `available` alternates
    features: int = 200  # in the context of the tracker
    expired: int = 100_000  # decisions that expire while the service is down
    log: int = 1_000_000  # rows that are exported and deleted
    longest: float = 120.0  # seconds that a case is watched for at the most


SHORT = Sizes(expired=5_000, log=50_000, longest=30.0)


class Waits:
    """Ordinary callers, each of whom asks once and waits for the answer."""

    def __init__(self, port: int, longest: float) -> None:
        ask(port, "/v1/bandits", {"name": "ordinary", "arms": ARMS, "policy": "thompson"})
        self._port, self._longest = port, longest
        self._over = threading.Event()
        self._own = threading.local()
        self.seconds: list[float] = []
        self._callers = ThreadPoolExecutor(CALLERS)
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Waits":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._callers.shutdown()

    def _run(self) -> None:
        due = time.perf_counter()
        while not self._over.is_set():
            time.sleep(max(0.0, due - time.perf_counter()))
            self._callers.submit(self._ask, due)
            due += EVERY

    def _ask(self, due: float) -> None:
        if not hasattr(self._own, "connection"):
            timeout = self._longest
            self._own.connection = HTTPConnection("127.0.0.1", self._port, timeout=timeout)
        try:
            self._own.connection.request("POST", "/v1/bandits/ordinary/decisions", b"{}")
            self._own.connection.getresponse().read()
        except (OSError, HTTPException):
            self._own.connection.close()
        self.seconds.append(time.perf_counter() - due)


def ask(port: int, path: str, body: object = None, method: str | None = None) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, content)
        response = connection.getresponse()
        found = response.read()
        if response.status >= 400:
            raise RuntimeError(found.decode())
        return json.loads(found) if found.startswith(b"{") else None
    finally:
        connection.close()


def create(port: int, name: str, **settings: Any) -> None:
    ask(port, "/v1/bandits", {"name": name, "arms": ARMS, "seed": 0, **settings})


def decide(port: int, name: str, requests: list[dict[str, Any]]) -> list[str]:
    """Ids."""
    found = ask(port, f"/v1/bandits/{name}/decisions/batch", {"decisions": requests})
    return [made["id"] for made in found["decisions"]]


def reward(port: int, name: str, ids: list[str]) -> None:
    pairs = [{"id": id, "reward": place % 2} for place, id in enumerate(ids)]
    ask(port, f"/v1/bandits/{name}/rewards/batch", {"rewards": pairs})


# Each prepares something, and gives what is then done to the others.


def quiet(port: int, sizes: Sizes) -> Callable[[], Any]:
    return lambda: None


def alternating(port: int, sizes: Sizes) -> Callable[[], Any]:
    names = [f"arm{i}" for i in range(sizes.arms)]
    create(port, "alternating", arms=names, policy="thompson")
    requests = [{"available": names[: -1 - place % 2]} for place in range(BATCH)]
    return partial(decide, port, "alternating", requests)


def long_context(port: int, sizes: Sizes) -> Callable[[], Any]:
    create(port, "context", context=[f"x{i}" for i in range(sizes.features)], policy="tracker")
    rows = np.random.default_rng(0).random((BATCH, sizes.features)).round(3).tolist()
    return partial(reward, port, "context", decide(port, "context", [{"context": x} for x in rows]))


def long_log(port: int, sizes: Sizes) -> None:
    create(port, "log", policy="thompson")
    for _ in range(0, sizes.log, 2 * BATCH):
        reward(port, "log", decide(port, "log", [{}] * BATCH))


def exports(port: int, sizes: Sizes) -> Callable[[], Any]:
    long_log(port, sizes)

    def read() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("GET", "/v1/bandits/log/log?format=csv")
        response = connection.getresponse()
        while response.read(1_000_000):
            pass
        connection.close()

    def all_six() -> None:
        readers = [threading.Thread(target=read) for _ in range(6)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()

    return all_six


def deleting(port: int, sizes: Sizes) -> Callable[[], Any]:
    return partial(ask, port, "/v1/bandits/log", method="DELETE")


CASES = {
    "quiet": quiet,
    f"a batch of {BATCH} with alternating `available`": alternating,
    f"a batch of {BATCH} rewards with a long context": long_context,
    "six exports of a long log": exports,
    "deleting a long log": deleting,
}
RESTART = "a restart with expired decisions of `recurrent`"


def watched(port: int, sizes: Sizes, disturb: Callable[[], Any]) -> tuple[list[float], float]:
    """Seconds of the ordinary caller, and how long the disturbance took."""
    begin, took = time.perf_counter(), []

    def run() -> None:
        try:
            disturb()
        except (OSError, HTTPException, RuntimeError) as error:
            print(f"  refused: {error}", flush=True)
        took.append(time.perf_counter() - begin)

    with Waits(port, sizes.longest) as waits:
        time.sleep(0.2)
        other = threading.Thread(target=run, daemon=True)
        other.start()
        other.join(sizes.longest)
        time.sleep(max(0.0, begin + LEAST - time.perf_counter()))
    return waits.seconds, took[0] if took else float("inf")


def show(case: str, tree: str, found: tuple[list[float], float]) -> None:
    p50, p99, most = (np.percentile(found[0], at) * 1e3 for at in (50, 99, 100))
    print(f"| {case} | {tree} | {p50:.1f} | {p99:.1f} | {most:.0f} | {found[1]:.1f} |", flush=True)


@contextmanager
def with_expired(tree: Path, count: int) -> Iterator[Serving]:
    """A service that was down when the windows of many decisions passed."""
    window = 5.0 + count / 200
    with tempfile.TemporaryDirectory() as folder:
        with service(folder, tree) as serving:
            create(serving.port, "expired", policy="recurrent", window=window, default_reward=0)
            create(serving.port, "ordinary", policy="thompson")
            for _ in range(0, count, BATCH):
                decide(serving.port, "expired", [{}] * BATCH)
            end = time.monotonic() + window
        time.sleep(max(0.0, end - time.monotonic()))
        with service(folder, tree) as serving:
            yield serving


def open_decisions(port: int) -> int | None:
    found = ask(port, "/v1/bandits")["bandits"]
    return next(bandit["open"] for bandit in found if bandit["name"] == "expired")


def until_expired(port: int) -> None:
    """Begins with the call that revives the bandit."""
    ask(port, "/v1/bandits/expired")
    while open_decisions(port):
        time.sleep(0.2)


def measure(trees: dict[str, Path], sizes: Sizes, only: str) -> None:
    print("| meanwhile | tree | p50, ms | p99, ms | longest, ms | it took, s |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for case, prepare in CASES.items():
        if only not in case:
            continue
        for name, tree in trees.items():
            with tempfile.TemporaryDirectory() as folder, service(folder, tree) as serving:
                if prepare is deleting:
                    long_log(serving.port, sizes)
                disturb = prepare(serving.port, sizes)
                show(case, name, watched(serving.port, sizes, disturb))
    if only in RESTART:
        for name, tree in trees.items():
            with with_expired(tree, sizes.expired) as serving:
                port = serving.port
                show(RESTART, name, watched(port, sizes, partial(until_expired, port)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fairness", description=__doc__)
    parser.add_argument("--before", metavar="REVISION", help="an older tree, as git knows it")
    parser.add_argument("--short", action="store_true", help="a few minutes, with smaller sizes")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names contain it")
    for field, value in Sizes()._asdict().items():
        parser.add_argument(f"--{field}", type=type(value), help=f"{value:g} unless --short")
    chosen = parser.parse_args()
    given = {field: getattr(chosen, field) for field in Sizes._fields}
    sizes = (SHORT if chosen.short else Sizes())._replace(
        **{field: value for field, value in given.items() if value is not None}
    )
    if chosen.before is None:
        measure({"now": ROOT}, sizes, chosen.only)
    else:
        with tree_of(chosen.before) as tree:
            measure({"before": tree, "now": ROOT}, sizes, chosen.only)


if __name__ == "__main__":
    main()
