"""A soak: workers that are killed and started again under mixed traffic, and looked at each time.

Clients remember whatever was acknowledged (`soak_ledger`), the seed decides what they ask
(`soak_traffic`, `soak_requests`, `soak_poisons`), and after every restart the log, the exports and
the learners are compared with it. Kills end after two fifths of the time: then memory is watched.
"""

import random
import sys
import time
from pathlib import Path
from typing import NamedTuple

from driftbandits import rebuild_agent
from driftbandits.service.store.store import Store
from tests.service.serving import Serving, ask
from tests.service.soak_ledger import Known, all_events, as_bytes, compare_events
from tests.service.soak_memory import Memory
from tests.service.soak_requests import REQUESTS
from tests.service.soak_traffic import Client, Traffic, path, wait_until

CLIENTS = 4
KILLING = 0.4  # of the time
PROGRESS = 30.0  # seconds
SETTLING = 1.0  # seconds of traffic between two kills, at least
MOST_PROBLEMS = 20
BAD_COUNTERS = (
    "driftbandits_replay_mismatches_total",
    'driftbandits_snapshots_total{state="damaged"}',
)
BAD_LINES = ("Traceback", "failed", "differ", "damaged")  # in the service's own log


class Plan(NamedTuple):
    """How long, and how often workers end."""

    seconds: float
    kills: int
    seed: int
    learners: int  # that are rebuilt and compared in the end


class Soak:
    """Workers with one database, and their clients."""

    def __init__(self, workers: list[Serving], database: str, plan: Plan, log: Path) -> None:
        self.workers, self.database, self.plan, self.log = workers, database, plan, log
        self.rng = random.Random(plan.seed)
        urls = [worker.url for worker in workers]
        self.traffic = Traffic(urls, plan.seed, CLIENTS, REQUESTS)
        self.ledger = self.traffic.ledger
        self.memory = Memory(workers)
        self.kills = self.stops = self.checks = 0
        self._next_line = PROGRESS

    def run(self) -> None:
        """Problems are in the ledger."""
        self.say(f"soak of {self.plan.seconds:g} seconds, SOAK_SEED={self.plan.seed}")
        try:
            self._run()
        except BaseException:
            self.traffic.give_up()
            raise
        self.say(self.summary())

    def _run(self) -> None:
        self.traffic.start()
        begin = time.monotonic()
        ends = sorted(self.rng.uniform(0.1, KILLING) for _ in range(self.plan.kills))
        for at in ends:
            self._wait(begin, at * self.plan.seconds)
            if self._is_hopeless():
                break
            self._restart()
            self.check(at_random=1)
            self._wait(begin, time.monotonic() - begin + SETTLING)
        self.memory.begin_watching()
        watched = (1 - KILLING) * self.plan.seconds  # also where restarts took longer than planned
        self._wait(begin, time.monotonic() - begin + watched)
        self.memory.end_watching()
        self.traffic.stop()
        self.check(at_random=self.plan.learners)
        self._stop_all()
        self.traffic.clients[0].close()

    def _wait(self, begin: float, until: float) -> None:
        """Until so many seconds have passed, or too much went wrong."""
        while (passed := time.monotonic() - begin) < until and not self._is_hopeless():
            self.memory.sample(*self.ledger.kept())
            if passed > self._next_line:
                self._next_line = passed + PROGRESS
                self.say(self._progress(passed))
            time.sleep(min(1.0, until - passed))

    def _is_hopeless(self) -> bool:
        return len(self.ledger.problems) > MOST_PROBLEMS

    def _restart(self) -> None:
        """One worker is killed; now and then it is stopped, as an operator does."""
        worker = self.rng.choice(self.workers)
        if self.stops < self.kills // 4:
            self.stops += 1
            self._expect(worker.stop() == 0, "a worker that was stopped has failed")
        else:
            self.kills += 1
            worker.kill()
        time.sleep(self.rng.uniform(0, 1))
        worker.start()
        self.memory.began(worker)

    def _stop_all(self) -> None:
        for worker in self.workers:
            self.memory.sample(*self.ledger.kept())
            self._expect(worker.stop() == 0, "a worker that was stopped has failed")
        lines = self.log.read_text().splitlines()
        wrong = [line for line in lines if any(bad in line for bad in BAD_LINES)]
        self._expect(not wrong, f"the service's log has {len(wrong)} errors: {wrong[:3]}")

    def _expect(self, true: bool, problem: str) -> None:
        if not true:
            self.ledger.complain(problem)

    # What is acknowledged is there

    def check(self, at_random: int) -> None:
        """All logs and counts; the exports and learners of so many bandits."""
        self.checks += 1
        with self.traffic.quiet() as client:
            time.sleep(0.3)  # for those who left before the answer
            bandits = list(self.ledger.bandits.values())
            store = Store(self.database, read_only=True)
            for known in bandits:
                self._check_log(client, known, store)
            store.close()
            for known in self.rng.sample(bandits, min(at_random, len(bandits))):
                client.export(known, exactly=True)
                self._check_learner(client, known)
            for worker in self.workers:
                self._check_counters(worker)

    def _check_log(self, client: Client, known: Known, store: Store) -> None:
        row = store.bandit(known.name)
        if row is None:
            self.ledger.complain(f"{known.name}: lost bandit")
            return
        _, found = client.insist("check", "GET", path(known))
        events = all_events(store, row)
        self.ledger.complain(*compare_events(known, events))
        decided = sum(event.kind == "decision" for event in events)
        settled = sum(event.kind in ("reward", "expiry") for event in events)
        told = found["decisions"], found["rewards"] + found["expired"] + found["open"]
        self._expect(told == (decided, decided), f"{known.name}: {found} of {decided} decisions")
        if "window" not in known.body:
            waiting = decided - settled
            self._expect(found["open"] == waiting, f"{known.name}: {found}, {waiting} wait")
        retired = {arm["name"] for arm in found["arms"] if arm["retired"]}
        self._expect(retired == known.retired, f"{known.name}: {retired}, not {known.retired}")

    def _check_learner(self, client: Client, known: Known) -> None:
        """Rebuilt from the log alone, it decides as the service does, bit for bit."""
        if "window" in known.body:
            self._expect(wait_until(lambda: not self._open(client, known)), "windows do not end")
        rebuilt, request = rebuild_agent(self.database, known.name), client.new_request(known)
        if not client.decide(known, request):
            return
        made = rebuilt.agent.decide(request.get("context", ()), id=request["id"])
        told, own = known.decisions[request["id"]], as_bytes(made.probabilities)
        self._expect((made.arm, own) == (told.arm, told.probabilities),
                     f"{known.name}: rebuilt, it decides {made}, served {told}")  # fmt: skip
        book, (_, found) = rebuilt.agent._book, client.insist("check", "GET", path(known))
        features = {arm["name"]: arm["features"] for arm in found["arms"]}
        same = features == {name: book.features_json(name) for name in book.arms.names}
        self._expect(same, f"{known.name}: other features than {features}")
        self._expect(not rebuilt.mismatches, f"{known.name}: {rebuilt.mismatches} mismatches")

    def _open(self, client: Client, known: Known) -> int:
        return client.insist("check", "GET", path(known))[1]["open"]

    def _check_counters(self, worker: Serving) -> None:
        lines = ask(worker.url, "GET", "/metrics")[1].decode().splitlines()
        for line in lines:
            bad = line.startswith(BAD_COUNTERS) and not line.endswith(" 0.0")
            self._expect(not bad, f"{worker.url}: {line}")

    # What is printed

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _progress(self, passed: float) -> str:
        answers = sum(self.ledger.answers.values())
        told = ", ".join(f"{n} {what}" for what, n in self.ledger.acknowledged().items())
        ended = f"{self.kills} kills, {self.stops} stops, {len(self.ledger.problems)} problems"
        return f"{passed:5.0f} s: {answers} requests; {told}; {ended}; {self.memory.last()} MB"

    def summary(self) -> str:
        """Requests by kind and status, and the figures."""
        by_kind: dict[str, list[str]] = {}
        for (kind, status), count in sorted(self.ledger.answers.items()):
            by_kind.setdefault(kind, []).append(f"{status}: {count}")
        rows = [f"| {kind} | {', '.join(counts)} |" for kind, counts in by_kind.items()]
        seconds = sorted(self.ledger.seconds) or [0.0]
        figures = {
            **self.ledger.acknowledged(),
            "kills, stops, checks": f"{self.kills}, {self.stops}, {self.checks}",
            "problems": len(self.ledger.problems),
            "decision, p50 and p99": f"{1e3 * seconds[len(seconds) // 2]:.1f} ms, "
            f"{1e3 * seconds[int(len(seconds) * 0.99)]:.1f} ms",
            "memory": self.memory.summary(),
            "seed": self.plan.seed,
        }  # fmt: skip
        rows += [f"| **{what}** | {figure} |" for what, figure in figures.items()]
        return "\n".join(["", "| request | answers |", "| --- | --- |", *rows])
