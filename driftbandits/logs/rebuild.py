"""An agent rebuilt from the log of a service's bandit, which is only read."""

from math import inf
from pathlib import Path
from typing import NamedTuple

from driftbandits import check
from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.settings import AgentSettings
from driftbandits.logs.replay import new_book, replay
from driftbandits.service.store.database import parse_url
from driftbandits.service.store.store import Store


class RebuiltAgent(NamedTuple):
    """An agent, and what it was rebuilt from."""

    agent: Agent
    events: int  # that were replayed
    mismatches: int  # decisions that came out differently; those of the log stand


def rebuild_agent(database: str, bandit: str, until: float | None = None) -> RebuiltAgent:
    """Rebuilds the learner of a bandit from its log alone, beside a service that runs or not.

    Args:
        database: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE.
        bandit: its name.
        until: unix time of the last event to be replayed; None replays all.
    """
    last = inf if until is None else until
    store = opened(database)
    try:
        check.known("bandit", bandit, [row.name for row in store.bandits()])
        row = store.bandit(bandit)
        assert row
        book = new_book(row.config, remember=AgentSettings().remember)
        corrections = store.corrections(row.id, until=last)
        seq = mismatches = 0
        while page := store.events(row.id, seq):
            events = [event for event in page if event.time <= last]
            mismatches += replay(book, events, corrections)
            seq += len(events)
            if len(events) < len(page):
                break
    finally:
        store.close()
    return RebuiltAgent(agent_of(book), seq, mismatches)


def opened(database: str) -> Store:
    """The store; where there is none, none is created."""
    url = parse_url(database)
    if url.drivername.startswith("sqlite") and not Path(url.database or "").is_file():
        check.fail("database", "a file that exists", database)
    return Store(database, read_only=True)
