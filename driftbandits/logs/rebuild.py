"""Rebuilds an agent from the log of a service's bandit, without changing the log."""

from math import inf
from pathlib import Path
from typing import NamedTuple

from driftbandits import check
from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.settings import AgentSettings
from driftbandits.logs.replay import replay, stored_book
from driftbandits.service.store.database import parse_url
from driftbandits.service.store.store import Store


class RebuiltAgent(NamedTuple):
    """An agent that was rebuilt from a log.

    Attributes:
        agent: The agent.
        events: The number of events that were replayed.
        mismatches: The number of decisions that came out differently. The agent has learned from
            the decisions in the log.

    Example:
        ```python
        from driftbandits import Agent, RebuiltAgent

        rebuilt = RebuiltAgent(Agent(["red", "green"]), events=0, mismatches=0)
        print(rebuilt.agent.arms, rebuilt.events, rebuilt.mismatches)
        ```
    """

    agent: Agent
    events: int
    mismatches: int


def rebuild_agent(database: str, bandit: str, until: float | None = None) -> RebuiltAgent:
    """Rebuilds the learner of a bandit from its log alone.

    The service may run or not. The database is only read.

    Args:
        database: The address of the database: `sqlite:///FILE` or
            `postgresql://USER:PASSWORD@HOST/DATABASE`.
        bandit: The name of the bandit.
        until: The unix time of the last event to replay. None replays all events.

    Returns:
        The agent, with the number of events and of decisions that came out differently.

    Raises:
        InputError: If the database or the bandit does not exist.

    Example:
        ```python
        import asyncio

        import httpx

        from driftbandits import asgi_app, rebuild_agent


        async def make_a_log():
            service = asgi_app("data", without_keys=True)
            inside = httpx.ASGITransport(service)
            async with service, httpx.AsyncClient(transport=inside) as http:
                url = "http://localhost/v1/bandits"
                shop = {"name": "shop", "arms": ["red", "green"], "policy": "thompson"}
                await http.post(url, json=shop)
                await http.post(f"{url}/shop/decisions", json={"id": "visit-1"})
                await http.post(f"{url}/shop/rewards", json={"id": "visit-1", "reward": 1})


        asyncio.run(make_a_log())
        rebuilt = rebuild_agent("sqlite:///data/driftbandits.sqlite", "shop")
        assert rebuilt.agent.counts.rewards == 1
        print(rebuilt.agent.counts)
        ```
    """
    last = inf if until is None else until
    store = opened(database)
    try:
        check.known("bandit", bandit, [row.name for row in store.bandits()])
        row = store.bandit(bandit)
        assert row
        book = stored_book(row.config, remember=AgentSettings().remember)
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
    """Opens the store, which must exist."""
    url = parse_url(database)
    if url.drivername.startswith("sqlite") and not Path(url.database or "").is_file():
        check.fail("database", "a file that exists", database)
    return Store(database, read_only=True)
