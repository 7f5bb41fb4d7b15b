"""The service under load, beside what others answer with: decision and reward, pair after pair.

A real service with its embedded database, which flushes every answer to the disk before it gives
it, and a client in a process of its own share the machine. In the same turns: Vowpal Wabbit's
daemon, ParetoBandit's router in this process, and our Agent in this process.
"""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import numpy as np

from benchmarks.measuring import PAUSE, REPEATS, Goal, Part, Series, ratios
from benchmarks.peers import version_of
from driftbandits.agents.agent import Agent
from driftbandits.agents.requests import Request

ROOT = Path(__file__).parent.parent
ARMS = [f"arm{i}" for i in range(10)]
FEATURES = 5
BATCH = 100
CONNECTIONS = {None: 48, BATCH: 6}  # by pairs in a request: see the notes
STARTING = 120  # seconds
AIMS = {"thompson": 1500, "tracker": 1200, "recurrent": 600}  # the pairs per second
TENFOLD = ("thompson", "tracker")  # in batches
LONGEST = 50  # milliseconds, p99
VW = "--daemon --foreground --num_children 1 --port {port} --cb_explore 10 --epsilon 0.05 --quiet"

Figures = dict[str, float]  # "pairs" per second, percentiles in ms, "busy" us on the core per pair
Turn = Callable[[float], Figures]  # for so many seconds


class Serving(NamedTuple):
    process: subprocess.Popen[str]
    port: int


@contextmanager
def service(folder: str, tree: Path = ROOT) -> Iterator[Serving]:
    """The durable default, of the code in a tree."""
    command = [sys.executable, "-m", "driftbandits.cli", "serve", "--data", folder]
    command += ["--without-keys", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    process = subprocess.Popen(
        command, cwd=tree, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout
        said = re.search(r"serves at http://[^:]+:(\d+)", process.stdout.readline())
        assert said, "the service ended before it served"
        serving = Serving(process, int(said[1]))
        wait_for(lambda: ask(serving.port, "/readyz"))
        yield serving
    finally:
        process.terminate()
        process.wait(STARTING)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def wait_for(attempt: Callable[[], Any]) -> Any:
    for _ in range(20 * STARTING):
        with suppress(OSError, HTTPException):
            return attempt()
        time.sleep(0.05)
    raise TimeoutError("nothing answers")


def ask(port: int, path: str, body: object = None) -> None:
    content = None if body is None else json.dumps(body).encode()
    urlopen(f"http://127.0.0.1:{port}{path}", content, STARTING).close()  # a refusal is an error


def seconds_on_core(pid: int) -> float:
    """Of all threads of a process, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def arms_with(features: int) -> list[str] | dict[str, dict[str, float]]:
    """The arms, with so many features."""
    rng = np.random.default_rng(0)
    rows = {arm: {f"f{i}": rng.normal() for i in range(features)} for arm in ARMS}
    return rows if features else ARMS


def asking(
    serving: Serving,
    policy: str,
    batch: int | None,
    context: int,
    name: str,
    features: int = 0,
) -> Turn:
    """A bandit of its own and a client that asks for it."""
    names = [f"x{i}" for i in range(context)]
    arms = arms_with(features)
    bandit = {"name": name, "arms": arms, "policy": policy, "context": names, "seed": 0}
    ask(serving.port, "/v1/bandits", bandit)
    client = f"-m benchmarks.load {serving.port} {name} --connections {CONNECTIONS[batch]}"
    client += f" --context {context}" + (f" --batch {batch}" if batch else "")

    def take(seconds: float) -> Figures:
        timing = f" --seconds {seconds} --warm-up {seconds / 8}"
        command = [sys.executable, *(client + timing).split()]
        before = seconds_on_core(serving.process.pid)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        busy, measured = seconds_on_core(serving.process.pid) - before, json.loads(done.stdout)
        whole = measured["pairs"] * (1 + 1 / 8)  # with the warming up
        return measured | {
            "pairs": measured["pairs"] / measured["seconds"],
            "busy": busy / whole * 1e6,
        }

    return take


def until(seconds: float, step: Callable[[], int]) -> Figures:
    """Steps of so many pairs in this process, for a while; after some to warm up."""
    step()
    pairs, begin, busy = 0, time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - begin) < seconds:
        pairs += step()
    return {"pairs": pairs / elapsed, "busy": (time.process_time() - busy) / pairs * 1e6}


def agent(policy: str, context: int, batch: int | None) -> Turn:
    """Our library in this process; nothing is on the disk."""
    bandit = Agent(ARMS, [f"x{i}" for i in range(context)], policy)
    rng = np.random.default_rng(0)

    def alone() -> int:
        made = bandit.decide(rng.random(context).tolist())
        bandit.reward(made.id, float(rng.random() * 10 < int(made.arm[-1])))
        return 1

    def together() -> int:
        asked = [Request(each) for each in rng.random((batch or 1, context)).tolist()]
        made, coins = bandit.decide_many(asked), rng.random(len(asked)) * 10
        pairs = zip(made, coins.tolist(), strict=True)
        bandit.reward_many([(each.id, float(coin < int(each.arm[-1]))) for each, coin in pairs])
        return len(asked)

    return lambda seconds: until(seconds, together if batch else alone)


def paretobandit(folder: str | None) -> Turn:
    """Its router in this process, with its store in memory or in a file."""
    from pareto_bandit import BanditRouter
    from pareto_bandit.feature_service import FeatureService
    from pareto_bandit.storage import EphemeralContextStore, SqliteContextStore

    logging.getLogger("pareto_bandit").setLevel(logging.ERROR)
    price = {"input_cost_per_m": 1.0, "output_cost_per_m": 1.0}
    store = SqliteContextStore(Path(folder) / "contexts.db") if folder else EphemeralContextStore()
    router = BanditRouter.create(
        dict.fromkeys(ARMS, price), priors="none", bandit_seed=0, context_store=store,
        feature_service=FeatureService.for_precomputed(FEATURES + 1),
    )  # fmt: skip
    rng = np.random.default_rng(0)

    def step() -> int:
        arm, log = router.route(np.append(rng.random(FEATURES), 1.0))
        router.process_feedback(log.request_id, float(rng.random() * 10 < int(arm[-1])))
        return 1

    return lambda seconds: until(seconds, step)


@contextmanager
def vowpal_wabbit() -> Iterator[socket.socket]:
    """Its daemon, which learns on one connection at a time."""
    port = free_port()
    code = f"from vowpalwabbit import Workspace; Workspace({VW.format(port=port)!r}).run_parser()"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        with wait_for(lambda: socket.create_connection(("127.0.0.1", port))) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield connection
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the child that serves would stay
        process.wait()


def daemon(connection: socket.socket, batch: int) -> Turn:
    """Gets a context's probabilities, draws the arm here, sends its cost and probability."""
    rng, lines = np.random.default_rng(0), connection.makefile()

    def exchange(examples: list[str]) -> list[str]:
        connection.sendall("".join(f"{example}\n" for example in examples).encode())
        return [next(filter(str.strip, lines)) for _ in examples]  # empty lines are between them

    def step() -> int:
        rows = rng.random((batch, FEATURES)).tolist()
        contexts = ["| " + " ".join(f"x{i}:{x:.4f}" for i, x in enumerate(row)) for row in rows]
        labelled = []
        for context, answer in zip(contexts, exchange(contexts), strict=True):
            probabilities = [float(pair.partition(":")[2]) for pair in answer.split(",")]
            passed = np.cumsum(probabilities) < rng.random()
            arm = min(int(passed.sum()), len(probabilities) - 1)
            cost = -int(rng.random() * 10 < arm)
            labelled.append(f"{arm + 1}:{cost}:{probabilities[arm]:.6f} {context}")
        exchange(labelled)
        return batch

    return lambda seconds: {"pairs": until(seconds, step)["pairs"]}  # most of it works elsewhere


def over_http(serving: Serving) -> dict[str, Turn]:
    """Single and batched, every policy; one with a context, as the peers have one."""
    turns = {}
    for policy in AIMS:
        for batch in (None, BATCH):
            name = f"{policy}, {'single' if batch is None else f'batches of {batch}'}"
            turns[f"service, {name}"] = asking(serving, policy, batch, 0, f"{policy}-{batch}")
    name = f"service, tracker with a context of {FEATURES}, single"
    return turns | {name: asking(serving, "tracker", None, FEATURES, "with-context")}


def in_process(folder: str) -> dict[str, Turn]:
    turns = {}
    for policy, context in [*((name, 0) for name in AIMS), ("tracker", FEATURES)]:
        name = f"Agent, {policy}" + (f" with a context of {context}" if context else "")
        turns[f"{name}, single"] = agent(policy, context, None)
        turns[f"{name}, batches of {BATCH}"] = agent(policy, context, BATCH)
    turns["ParetoBandit, in memory"] = paretobandit(None)
    return turns | {"ParetoBandit, SQLite": paretobandit(folder)}


def take_turns(turns: dict[str, Turn], seconds: float) -> dict[str, list[Figures]]:
    """All of them in turn, several times; those in this process need less time for a figure."""
    found: dict[str, list[Figures]] = {name: [] for name in turns}
    for repeat in range(REPEATS):
        for name, take in turns.items():
            time.sleep(PAUSE)
            found[name].append(take(seconds if name.startswith("service") else seconds / 4))
            pairs = found[name][-1]["pairs"]
            print(f"  {repeat + 1}/{REPEATS}  {pairs:10,.0f} pairs/s  {name}", flush=True)
    return found


def series(found: dict[str, list[Figures]]) -> list[Series]:
    units = {
        "pairs": "pairs per second", "busy": "us on the core per pair, without the client",
        "decide_p50": "ms, p50 of a decision", "decide_p99": "ms, p99 of a decision",
        "reward_p50": "ms, p50 of a reward", "reward_p99": "ms, p99 of a reward",
        "client_us": "us on the core per pair, the client",
    }  # fmt: skip
    return [
        Series(name, [each[figure] for each in repeats], unit)
        for figure, unit in units.items()
        for name, repeats in found.items()
        if figure in repeats[0]
    ]


def goals(found: dict[str, list[Figures]]) -> list[Goal]:
    def figure(name: str, key: str = "pairs") -> list[float]:
        return [each[key] for each in found[name]]

    goals = []
    for policy, aim in AIMS.items():
        alone, many = f"service, {policy}, single", f"service, {policy}, batches of {BATCH}"
        goals.append(Goal(f"{alone}: pairs per second", figure(alone), low=aim))
        for key, what in (("decide_p99", "a decision"), ("reward_p99", "a reward")):
            goals.append(Goal(f"{alone}: ms, p99 of {what}", figure(alone, key), high=LONGEST))
        low = 10 * aim if policy in TENFOLD else None
        goals.append(Goal(f"{many}: pairs per second", figure(many), low=low))
    context = f"tracker with a context of {FEATURES}, single"
    for mine, peer in [
        (f"service, {context}", "Vowpal Wabbit, single"),
        (f"Agent, {context}", "ParetoBandit, in memory"),
        (f"Agent, {context}", "ParetoBandit, SQLite"),
    ]:
        times = ratios(figure(mine), figure(peer))
        goals.append(Goal(f"{mine}: times as many pairs as {peer}", times))
    return goals


def notes() -> list[str]:
    return [
        f"{len(ARMS)} arms. A pair is a decision and its reward. The service flushes both to its "
        "SQLite file before it answers; client and service share the machine's cores.",
        f"{CONNECTIONS[None]} connections for single pairs, of 32, 48 and 64, two to four tries of "
        "each: more of them are answered in one group, which costs less for each and takes longer, "
        "at 64 above 50 ms for one recurrent reward in a hundred.",
        f"{CONNECTIONS[BATCH]} connections for batches, of 4, 5, 6 and 8, three tries of each: "
        "fewer leave the thread that decides or the one that writes without work at times; more do "
        "not answer more pairs, only later.",
        f"ParetoBandit {version_of('paretobandit')}: calls in one process, no HTTP; LinUCB with "
        f"forgetting on {FEATURES} numbers and a constant. Its SQLite store flushes the context of "
        "each decision; what was learned is on the disk only when one saves it.",
        "Agent is our library in the same process, nothing on the disk: the like-for-like "
        "comparison. It also gives the probability of every arm; ParetoBandit's router does not.",
        f"Vowpal Wabbit {version_of('vowpalwabbit')}: its daemon over plain TCP, one connection; "
        f"cb_explore, epsilon-greedy, {FEATURES} numbers. It keeps nothing on the disk and no open "
        "decisions: the client draws the arm and sends the context again with the reward.",
    ]


def service_load(short: bool) -> Part:
    """Everything in turns, on a disk: a folder for temporary files may be in memory."""
    (ROOT / "results").mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "results"))
        connection = stack.enter_context(vowpal_wabbit())
        turns = over_http(stack.enter_context(service(folder)))
        turns["Vowpal Wabbit, single"] = daemon(connection, 1)
        turns[f"Vowpal Wabbit, {BATCH} at a time"] = daemon(connection, BATCH)
        found = take_turns(turns | in_process(folder), 1.0 if short else 8.0)
    return Part("The service under load, 2 cores", series(found), goals(found), notes())
