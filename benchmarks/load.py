"""python -m benchmarks.load: asks a service as fast as it answers, on some connections at a time.

Each connection decides, rewards that decision with 0 or 1, and begins anew. It is a process of its
own, so that service and client have a core each, and speaks HTTP by itself, as a client for all
purposes would need more time than the service. Prints one line of JSON.
"""

import argparse
import asyncio
import json
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Made(msgspec.Struct):
    """What the client needs of a decision."""

    id: str
    arm: str


class MadeMany(msgspec.Struct):
    decisions: list[Made]


class Learned(msgspec.Struct):
    status: str


class LearnedMany(msgspec.Struct):
    rewards: list[Learned]


@dataclass
class Load:
    """What to ask for, and what was measured."""

    port: int
    bandit: str
    batch: int | None  # pairs in a request; none asks for single ones
    over: asyncio.Future[None]
    coins: random.Random
    context: str  # JSON
    measuring: bool = False
    pairs: int = 0
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"decide": [], "reward": []})

    def request(self, path: str, body: bytes) -> bytes:
        batch = "/batch" if self.batch else ""
        head = f"POST /v1/bandits/{self.bandit}/{path}{batch} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        return (
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    def question(self) -> bytes:
        one = f'{{"context":{self.context}}}'
        many = ",".join([one] * (self.batch or 1))
        return self.request(
            "decisions", (f'{{"decisions":[{many}]}}' if self.batch else one).encode()
        )

    def rewarding(self, made: list[Made]) -> bytes:
        """Arms are the better the higher their number, which ends their name."""
        rewards = [
            {"id": each.id, "reward": int(self.coins.random() * 10 < int(each.arm[-1]))}
            for each in made
        ]
        return self.request(
            "rewards", msgspec.json.encode({"rewards": rewards} if self.batch else rewards[0])
        )

    def fail(self, error: Exception) -> None:
        if not self.over.done():
            self.over.set_exception(error)


class Caller(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._question = load.question()
        self._made: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            MadeMany if load.batch else Made
        )
        self._learned: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            LearnedMany if load.batch else Learned
        )

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask("decide", self._question)

    def _ask(self, kind: str, request: bytes) -> None:
        self._kind, self._came, self._begin = kind, b"", time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._came += data
        try:
            body = body_of(self._came)
            if body is not None:
                self._answered(body)
        except Exception as error:
            self._load.fail(error)

    def _answered(self, body: bytes) -> None:
        load = self._load
        if load.measuring:
            load.seconds[self._kind].append(time.perf_counter() - self._begin)
        if self._kind == "decide":
            made = self._made.decode(body)
            self._ask("reward", load.rewarding(made.decisions if load.batch else [made]))
            return
        learned = self._learned.decode(body)
        statuses = {each.status for each in (learned.rewards if load.batch else [learned])}
        if statuses != {"learned"}:
            raise RuntimeError(f"a reward was not learned: {body[:300]!r}")
        if load.measuring:
            load.pairs += load.batch or 1
        self._ask("decide", self._question)

    def connection_lost(self, error: Exception | None) -> None:
        self._load.fail(error or RuntimeError("the service closed a connection"))


def body_of(came: bytes) -> bytes | None:
    """The body of an answer that is whole; any but 200 is an error."""
    head, end, body = came.partition(b"\r\n\r\n")
    if not end:
        return None
    found = LENGTH.search(head)
    if found is None:
        raise RuntimeError(f"an answer without a length: {head!r}")
    if len(body) < int(found[1]):
        return None
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"refused: {came[:300]!r}")
    return body


async def run(options: argparse.Namespace) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    context = json.dumps([0.5] * options.context)
    load = Load(
        options.port, options.bandit, options.batch, loop.create_future(), random.Random(0), context
    )
    for _ in range(options.connections):
        await loop.create_connection(lambda: Caller(load), "127.0.0.1", options.port)
    await asyncio.wait([load.over], timeout=options.warm_up)
    load.measuring = not load.over.done()
    begin, busy = time.perf_counter(), time.process_time()
    await asyncio.wait([load.over], timeout=options.seconds)
    load.measuring = False
    elapsed, busy = time.perf_counter() - begin, time.process_time() - busy
    if load.over.done():
        load.over.result()  # raises
    load.over.cancel()
    return {"pairs": load.pairs, "seconds": elapsed, "client_us": busy / load.pairs * 1e6} | {
        f"{kind}_p{percent}": float(np.percentile(seconds, percent)) * 1e3
        for kind, seconds in load.seconds.items()
        for percent in (50, 99)
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("bandit")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--warm-up", type=float, default=1.0)
    parser.add_argument("--batch", type=int, help="pairs in a request; none asks for single ones")
    parser.add_argument("--context", type=int, default=0, help="numbers that come with a decision")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
