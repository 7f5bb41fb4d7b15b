"""Programs of agents are kept between processes where the user says so."""

from pathlib import Path

import pytest

from driftbandits import Agent
from driftbandits.agents.programs import compiled_programs
from driftbandits.simulation import compiling
from tests.simulation.test_kept_programs import fail, folder

__all__ = ["folder"]  # the fixture

ARMS = ["red", "green", "blue"]


def pairs(agent: Agent) -> list[object]:
    results: list[object] = []
    for t in range(5):
        made = agent.decide(now=float(t))
        results += [made.arm, made.probability, agent.reward(made.id, t / 5, now=float(t))]
    return results


def forget() -> None:
    compiled_programs.cache_clear()


@pytest.mark.parametrize("policy", ["thompson", "tracker"])
def test_the_next_process_compiles_nothing_and_decides_the_same(
    folder: Path, tmp_path: Path, monkeypatch, policy: str
) -> None:
    usual = pairs(Agent(ARMS, policy=policy, cache=False))
    assert not folder.exists()
    made = Agent(ARMS, policy=policy, cache=tmp_path / "mine")
    assert pairs(made) == usual
    assert len(list((tmp_path / "mine").iterdir())) >= 3
    del made
    forget()
    monkeypatch.setattr(compiling, "compile_all", fail)
    assert pairs(Agent(ARMS, policy=policy, cache=tmp_path / "mine")) == usual
    assert not folder.exists()


def test_the_variable_is_for_agents_too(folder: Path, tmp_path: Path, monkeypatch) -> None:
    agent = Agent(ARMS, policy="uniform")
    usual = pairs(agent)
    assert len(list(folder.iterdir())) >= 3
    agent.save(tmp_path / "agent")
    del agent
    forget()
    monkeypatch.setattr(compiling, "compile_all", fail)
    assert pairs(Agent(ARMS, policy="uniform")) == usual
    monkeypatch.setenv("DRIFTBANDITS_CACHE", "off")
    assert pairs(Agent.load(tmp_path / "agent", cache=folder))


def test_the_argument_goes_before_the_variable(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    pairs(Agent(ARMS, policy="uniform", cache=True))
    assert list((tmp_path / "home" / "driftbandits").iterdir())
    assert not folder.exists()
