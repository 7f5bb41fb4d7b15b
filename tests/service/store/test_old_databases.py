"""Databases of older versions are opened, with their snapshots and their logs."""

import logging
import shutil
from pathlib import Path

import pytest

from driftbandits import rebuild_agent
from driftbandits.agents.requests import Request
from driftbandits.service.engine.reviver import newest_book, revive
from driftbandits.service.store.store import Store

OLD = Path(__file__).with_name("old_databases")
POLICIES = {"still": "thompson", "drifting": "tracker(version=1)"}  # what they are today


@pytest.mark.parametrize("version", ["0.7.0", "0.8.0", "0.9.0", "0.15.0"])
@pytest.mark.parametrize(("bandit", "context"), [("still", []), ("drifting", [0.5])])
def test_an_old_bandit_goes_on(
    version: str, bandit: str, context: list[float], tmp_path: Path, caplog
) -> None:
    """Twelve decisions, nine with a reward, and an arm that came after the seventh."""
    shutil.copy(OLD / f"{version}.sqlite", tmp_path)
    database = f"sqlite:///{tmp_path}/{version}.sqlite"
    store = Store(database)
    row = store.bandit(bandit)
    assert row
    assert row.config["policy"] == POLICIES[bandit]
    with caplog.at_level(logging.WARNING):
        book, seq = newest_book(store, row)
    assert not caplog.records, "the snapshot cannot be used"
    assert (book.counts, seq) == ((12, 9, 0), len(store.events(row.id, 0)))
    rebuilt = rebuild_agent(database, bandit)
    assert rebuilt.mismatches == 0
    assert (rebuilt.agent.counts, rebuilt.agent.open) == (book.counts, list(book.open))
    lease = store.claim(row.id, "one", "http://one", 60.0)
    assert lease
    live, mismatches = revive(store, row, lease)
    assert mismatches == 0
    ((made,),) = live.decide([[Request(context, id="new")]], live.book.now, store.find)
    assert set(made.probabilities) == {"red", "green", "blue"}
    live.reward([("d0", 1.0)], live.book.now, store.find)
    assert store.append([live.to_be_written()]) == set()
    assert live.book.counts == (13, 10, 0)
    store.close()
