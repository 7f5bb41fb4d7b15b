"""Writes small saved agents, and beside each what it decides next, for the tests of loading.

Run it once for a new version of the file (`python -m tests.agents.saved_agents.make`) and keep what
it wrote for ever: files of old versions must go on loading.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits.agents.agent import Agent
from driftbandits.agents.file_bytes import VERSION

HERE = Path(__file__).parent
AGENTS: dict[str, tuple[str, list[str]]] = {
    "thompson": ("thompson", []),
    "tracker": ("tracker", ["age", "hour"]),
    "recurrent": ("recurrent(hidden=8)", []),
    "sw_ucb": ("sw_ucb(window=50)", []),
}
TYPED = "typed"  # since version 4: contexts with a schema, arms with features
SCHEMA = {"age": "number", "country": "category(buckets=4)", "new": "flag"}
FEATURES = {"price": "number", "kind": "category(buckets=3)"}
NEXT = 12


def typed() -> Agent:
    arms = {"red": {"price": 3.0}, "green": {"price": 5, "kind": "new"}, "blue": {}}
    settings = {"window": 100, "default_reward": 0.0, "features": FEATURES}
    return Agent(arms, SCHEMA, "d_lin_ts", 7, **settings)


def plain(policy: str, context: list[str]) -> Agent:
    return Agent(["red", "green", "blue"], context, policy, 7, window=100, default_reward=0.0)


def context_for(agent: Agent, rng: np.random.Generator) -> Any:
    if not isinstance(agent.settings.context, dict):
        return rng.normal(size=len(agent.settings.context))
    country = str(rng.choice(["AT", "DE", "FR", "IT", "PL"]))
    return {"age": 40 + 9 * rng.normal(), "country": country} | (
        {"new": True} if rng.random() < 0.5 else {}
    )


def experienced(agent: Agent) -> Agent:
    """With open decisions, answered and expired ones, a retired arm and a spare slot."""
    rng = np.random.default_rng(0)
    for now in range(30):
        decision = agent.decide(context_for(agent, rng), now=now)
        if now % 4:
            agent.reward(decision.id, float(rng.random() < 0.5), now=now)
    agent.add_arm("grün")
    agent.retire_arm("blue")
    agent.expire(now=104)
    return agent


def goes_on(agent: Agent) -> list[dict[str, Any]]:
    """What it decides next, with rewards, old ones too."""
    rng = np.random.default_rng(1)
    made = []
    for now in range(105, 105 + NEXT):
        decision = agent.decide(context_for(agent, rng), now=now)
        about = {"id": decision.id, "arm": decision.arm, "probability": decision.probability}
        made.append(about | {"probabilities": decision.probabilities})
        agent.reward(agent.open[0], float(rng.random() < 0.5), now=now)
    return made


def main() -> None:
    agents = {name: plain(*settings) for name, settings in AGENTS.items()} | {TYPED: typed()}
    for name, fresh in agents.items():
        path = HERE / str(VERSION) / f"{name}.agent"
        path.parent.mkdir(exist_ok=True)
        agent = experienced(fresh)
        agent.save(path)
        path.with_suffix(".json").write_text(json.dumps(goes_on(agent), indent=1) + "\n")


if __name__ == "__main__":
    main()
