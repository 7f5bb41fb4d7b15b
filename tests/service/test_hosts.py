"""Hosts that are cut off or frozen, with clocks that differ: nothing is lost, the others go on."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

import pytest

from driftbandits.service.http.keyring import digest_of, new_key
from driftbandits.service.store.store import Store
from tests.conftest import SOAK
from tests.service.hosts import CALLERS, DATABASE, Host, Network, database, enter, inside
from tests.service.serving import ask
from tests.service.test_nothing_lost import (
    ARMS,
    BANDITS,
    PATIENCE,
    WAITS,
    Clients,
    check_nothing_lost,
)

HOSTS = "abc" if SOAK else "ab"
ROUNDS = 3 if SOAK else 1
SECONDS = 8.0 if SOAK else 4.0  # that a fault lasts at least; a lease lasts for three
LATEST = 2.0 if SOAK else 10.0  # seconds until a caller of a healthy host is answered
Fault = Callable[[Network, Host, list[str]], None]


class Answer(NamedTuple):
    """To a decision or a reward; to add an arm, a program may have to be compiled."""

    begin: float
    end: float
    url: str
    status: int  # 0 for none


class Callers(Clients):
    """On a host of their own. Each asks one worker, and another if that one cannot serve."""

    def __init__(self, urls: list[str], key: str, seed: int) -> None:
        self.answers: list[Answer] = []
        self._key, self._homes, self._here = key, itertools.cycle(urls), threading.local()
        super().__init__(urls, seed, timeout=12.0)

    def _run(self, rng: random.Random) -> None:
        enter(CALLERS)
        self._here.url = next(self._homes)
        super()._run(rng)

    def _insist(
        self, rng: random.Random, path: str, body: object, fine: tuple[int, ...] = ()
    ) -> dict | None:
        url = self._here.url
        while not self.stopped.is_set():
            status, answer = self._ask(url, path, body)
            if status in (200, 201, *fine):
                return answer
            if status not in (0, 429, 503):
                self.strange.append((status, answer))
            if status == 0 or answer["error"]["code"] == "no_database":
                url = rng.choice(self.urls)
            time.sleep(0.02)
        return None

    def _ask(self, url: str, path: str, body: object) -> tuple[int, dict]:
        begin = time.monotonic()
        try:
            status, answer = ask(url, "POST", path, body, self._key, self.timeout)
        except (OSError, HTTPException):
            status, answer = 0, {}
        if "/arms" not in path:
            self.answers.append(Answer(begin, time.monotonic(), url, status))
        return status, answer

    def wait_for_hosts(self, urls: list[str]) -> None:
        """Until each of them has served somebody."""
        begin, end, missing = time.monotonic(), time.monotonic() + PATIENCE, set(urls)
        while missing:
            assert time.monotonic() < end, f"nobody is served at {missing}"
            time.sleep(0.05)
            served = {each.url for each in self.answers if each.begin > begin and each.status < 300}
            missing -= served


def no_database(network: Network, host: Host, others: list[str]) -> None:
    network.cut(host.name, DATABASE)


def no_hosts(network: Network, host: Host, others: list[str]) -> None:
    network.cut(host.name, *others)


def neither(network: Network, host: Host, others: list[str]) -> None:
    network.cut(host.name, DATABASE, *others)


def frozen(network: Network, host: Host, others: list[str]) -> None:
    """All of it, as a virtual machine is while it moves: not even its kernel answers."""
    host.pause()
    network.cut(host.name, DATABASE, CALLERS, *others)


def stopped(network: Network, host: Host, others: list[str]) -> None:
    """The process alone: its kernel still takes everything in."""
    host.pause()


def no_neighbour(network: Network, host: Host, others: list[str]) -> None:
    network.cut(host.name, others[0])


FAULTS: list[Fault] = [no_database, no_hosts, neither, frozen]
MORE_FAULTS: list[Fault] = [stopped, no_neighbour] if SOAK else []
KEEPS_ITS_BANDITS = (no_hosts, no_neighbour)  # it can renew its lease


class Setting(NamedTuple):
    network: Network
    hosts: list[Host]
    store: Store  # for the tests themselves
    url: str  # of the database, likewise
    key: str


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with ExitStack() as stack:
        network = stack.enter_context(Network([DATABASE, CALLERS, *HOSTS]))
        remote, local = stack.enter_context(database())
        store, key = Store(local), new_key()
        stack.callback(store.close)
        store.add_key(digest_of(key), "admin", "tests")
        hosts = [Host(name, remote, tmp_path) for name in HOSTS]
        for host in hosts:
            stack.push(host)
        with ThreadPoolExecutor(len(hosts)) as pool:
            list(pool.map(Host.start, hosts))
        yield Setting(network, hosts, store, local, key)


def create_bandits(setting: Setting) -> None:
    """The first on the first host, the second on the second."""
    for host, (name, policy) in zip(setting.hosts, BANDITS.items(), strict=False):
        body = {"name": name, "arms": ARMS[:3], "policy": policy, "seed": 1, **WAITS[name]}
        assert ask(host.url, "POST", "/v1/bandits", body, setting.key, PATIENCE)[0] == 201


def owner(setting: Setting, bandit: str) -> Host:
    row = setting.store.bandit(bandit)
    assert row
    (found,) = [host for host in setting.hosts if host.url == row.url]
    return found


def test_a_host_is_cut_off_or_frozen(setting: Setting, capsys) -> None:
    inside(CALLERS, lambda: create_bandits(setting))
    urls = [host.url for host in setting.hosts]
    callers = Callers(urls, setting.key, 9)
    for fault in [*FAULTS, *MORE_FAULTS] * ROUNDS:
        callers.wait_for_hosts(urls)
        line = suffer(setting, callers, fault)
        if SOAK:
            with capsys.disabled():
                print(line)
    callers.wait_for_hosts(urls)
    callers.stop()
    assert [host.stop() for host in setting.hosts] == [0] * len(urls)
    check_nothing_lost(setting.url, callers, at_least=200)
    check_clocks(setting.store)


def check_clocks(store: Store) -> None:
    """The log has times of hosts that differ by hours."""
    row = store.bandit("still")
    assert row
    times = [event.time for event in store.events(row.id, 0)]
    assert max(times) - min(times) > 3600


def suffer(setting: Setting, callers: Callers, fault: Fault) -> str:
    """One host is at fault for a while; gives a line about the callers of it and of the others."""
    victim = owner(setting, "still")
    others = [host for host in setting.hosts if host is not victim]
    begin = time.monotonic()
    try:
        fault(setting.network, victim, [host.name for host in others])
        time.sleep(SECONDS)
        if fault not in KEEPS_ITS_BANDITS:
            wait_for_takeover(setting, callers, victim)
    finally:
        setting.network.heal()
        victim.resume()
    end = time.monotonic()
    callers.wait_for_hosts([host.url for host in setting.hosts])
    asked = [each for each in callers.answers if each.begin < end and each.end > begin]
    healthy = [each for each in asked if each.url != victim.url]
    ill = [each for each in asked if each.url == victim.url]
    summary = f"{fault.__name__}: {about(healthy)}; at the host itself {about(ill)}"
    assert not [each for each in healthy if each.end - each.begin > LATEST], summary
    return summary


def wait_for_takeover(setting: Setting, callers: Callers, victim: Host) -> None:
    end = time.monotonic() + PATIENCE
    while (heir := owner(setting, "still")) is victim:
        assert time.monotonic() < end, "nobody takes over"
        time.sleep(0.1)
    callers.wait_for_hosts([heir.url])


def about(answers: list[Answer]) -> str:
    waited = max((each.end - each.begin for each in answers), default=0.0)
    counts = Counter(each.status for each in answers)
    return f"slowest answer {waited:.2f} s of {len(answers)}, by status {dict(counts)}"
