"""The public face of an agent is small, and docs/how_to/agent.md shows all of it."""

import inspect
import re
from pathlib import Path

import pytest

from driftbandits import Agent
from driftbandits.agents.settings import AgentSettings

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how_to" / "agent.md").read_text()
SETTINGS = (DOCS / "reference" / "settings.md").read_text()
MEMBERS = [name for name in dir(Agent) if not name.startswith("_")]


def test_an_agent_shows_at_most_sixteen_members() -> None:
    agent = Agent(["red", "green"], policy="thompson")
    assert [name for name in dir(agent) if not name.startswith("_")] == MEMBERS
    assert len(MEMBERS) <= 16


@pytest.mark.parametrize("name", MEMBERS)
def test_each_member_has_a_docstring_and_an_example(name: str) -> None:
    assert inspect.getdoc(getattr(Agent, name))
    (section,) = re.findall(rf"^## `{name}`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert re.search(rf"\b[Aa]gent\.{name}\b", example)


def test_the_examples_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "agent.md", "exec"), names)
    assert "decision 'visit-1' already has the reward 1.0, got 0.0" in capsys.readouterr().out


def test_every_argument_and_setting_is_explained() -> None:
    arguments = {*inspect.signature(Agent).parameters}
    assert arguments == {*AgentSettings._fields, "arms", "cache"}
    assert [name for name in arguments if f"\n| `{name}` |" not in SETTINGS] == []
