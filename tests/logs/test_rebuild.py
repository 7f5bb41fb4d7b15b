"""An agent rebuilt from a log decides as the bandit whose log it is."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandits import InputError, rebuild_agent
from driftbandits.agents.requests import Request
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.store.store import Store

CONFIG = {
    "arms": ["a", "b"], "context": ["x"], "policy": "lin_ts", "seed": 1, "window": 40.0,
    "default_reward": 0.1, "reward_range": [0, 1], "noise": 0.5, "horizon": None,
}  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/bandits.sqlite"


@pytest.fixture
def live(database: str) -> Any:
    """A bandit after decisions, rewards, expiries and arms that came and went; times 0 to 59."""
    store = Store(database)
    row = store.create_bandit("shop", CONFIG)
    assert row
    lease = store.claim(row.id, "one", "http://one", 60.0)
    assert lease
    live, _ = revive(store, row, lease)
    random = np.random.default_rng(0)
    for now in range(60):
        live.expire(now)
        if now == 20:
            live.change_arm("arm_added", "c", now)
        if now == 30:
            live.change_arm("arm_retired", "a", now)
        request = Request([float(random.normal())], id=f"d{now}")
        live.decide([[request]], now, store.find)
        if now % 3:
            live.reward([(f"d{now}", float(random.random()))], now, store.find)
        assert store.append([live.to_be_written()]) == set()
    yield live
    store.close()


def states(live: LiveBandit, agent: Any) -> list[dict[str, np.ndarray]]:
    return [live.book.learner.state(), agent._book.learner.state()]


def test_the_agent_of_the_whole_log(live: LiveBandit, database: str) -> None:
    agent, events, mismatches = rebuild_agent(database, "shop")
    assert (events, mismatches) == (live.seq, 0)
    assert (agent.arms, agent.retired) == (["a", "b", "c"], ["a"])
    assert agent.counts == live.book.counts
    assert agent.counts.expired > 0
    assert agent.open == list(live.book.open)
    one, other = states(live, agent)
    assert all(one[path].tobytes() == other[path].tobytes() for path in one)
    ((expected,),) = live.decide([[Request([0.5], id="next")]], 60.0, lambda *_: {})  # type: ignore[misc]
    made = agent.decide([0.5], id="next", now=60)
    assert made.probabilities == expected.probabilities
    assert made.arm == expected.arm


def test_the_agent_of_an_earlier_moment(live: LiveBandit, database: str) -> None:
    agent = rebuild_agent(database, "shop", until=24).agent
    assert (agent.arms, agent.retired) == (["a", "b", "c"], [])
    assert agent.counts == (25, 16, 0)
    assert rebuild_agent(database, "shop", until=-1).events == 0


def test_a_rebuilt_agent_knows_past_decisions(live: LiveBandit, database: str) -> None:
    agent = rebuild_agent(database, "shop").agent
    reward = agent._book.past["d1"].reward
    assert reward is not None
    assert agent.reward("d1", reward, now=60) == "duplicate"


def test_the_database_is_only_read(live: LiveBandit, database: str, tmp_path: Path) -> None:
    before = contents(tmp_path)
    assert set(before) == {"bandits.sqlite", "bandits.sqlite-wal"}, "the service still has it"
    assert rebuild_agent(database, "shop").events == live.seq
    assert contents(tmp_path) == before
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(InputError, match="database must be a file that exists"):
        rebuild_agent(f"sqlite:///{missing}", "shop")
    assert not missing.exists()


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_a_file_of_a_closed_service(
    live: LiveBandit, database: str, tmp_path: Path, journal_mode: str
) -> None:
    copy = closed_copy(database, tmp_path)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
    before = contents(copy.parent)
    assert rebuild_agent(f"sqlite:///{copy}", "shop").events == live.seq
    assert contents(copy.parent)[copy.name] == before[copy.name]


def test_a_file_that_may_not_be_written(
    live: LiveBandit, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = closed_copy(database, tmp_path)
    copy.chmod(0o444)
    copy.parent.chmod(0o555)
    monkeypatch.setattr(os, "access", lambda *_: False)  # as it would be for all but root
    before = contents(copy.parent)
    assert rebuild_agent(f"sqlite:///{copy}", "shop").events == live.seq
    assert contents(copy.parent) == before
    copy.parent.chmod(0o755)


def closed_copy(database: str, folder: Path) -> Path:
    """A copy of the database, alone in a folder with an odd name."""
    place = folder / "50% off #1"
    place.mkdir()
    with (
        closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as source,
        closing(sqlite3.connect(place / "copy.sqlite")) as target,
    ):
        source.backup(target)
    return place / "copy.sqlite"


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files but the index of the log, which readers share."""
    paths = [path for path in folder.iterdir() if path.is_file() and not path.name.endswith("-shm")]
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize("content", ["", "CREATE TABLE bandits (id INTEGER)", None])
def test_a_database_of_somebody_else_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "other.sqlite"
    if content is None:
        file.write_bytes(b"This is a text.\n" * 100)
    else:
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(content)
        file.touch()
    before = file.read_bytes()
    message = "database must be one that a driftbandits service wrote, got 'sqlite:///"
    with pytest.raises(InputError, match=message):
        rebuild_agent(f"sqlite:///{file}", "shop")
    assert contents(tmp_path) == {"other.sqlite": before}


def test_an_unknown_bandit_is_refused(live: LiveBandit, database: str) -> None:
    with pytest.raises(InputError, match="bandit must be one of shop, got 'shap'"):
        rebuild_agent(database, "shap", until=time.time())
