"""The service's documents hold: their examples run in order, and they leave nothing out."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import driftbandits
from driftbandits.agents.settings import AgentSettings
from driftbandits.cli.service import keys, serve
from driftbandits.service.http import messages
from driftbandits.service.http.export import AT_ONCE
from driftbandits.service.http.protocol import DEFAULT_LIMITS
from driftbandits.service.http.trial import LARGEST
from tests.service.http.reader import Place, curl, place
from tests.service.serving import ask
from tools.publish.page_blocks import code_blocks

__all__ = ["place"]  # a fixture: pytest finds it by name

DOCS = Path(__file__).parents[3] / "docs"
SETTINGS = (DOCS / "reference" / "settings.md").read_text()
PACKAGE = Path(driftbandits.__file__).parent
PORT = "localhost:8000"  # as the documents have it
KEYS = ("driftbandits keys create", "driftbandits keys list")
PAGES = {"how_to/run_the_service": 20, "how_to/late_rewards": 8, "reference/log": 5}  # examples


@pytest.mark.parametrize("name", PAGES)
def test_examples_run_in_order(
    name: str, place: Place, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place.folder)
    text = (DOCS / f"{name}.md").read_text().replace(PORT, f"127.0.0.1:{place.serving.port}")
    names: dict[str, object] = {}
    ran, said = 0, ""
    for block in code_blocks(text):
        lines = block.text.splitlines() if block.language == "sh" else []
        for line in lines:
            if line.startswith("curl "):
                curl(line, place.folder)
            elif line.startswith(KEYS):
                command = [sys.executable, "-m", "driftbandits", *shlex.split(line)[1:]]
                assert subprocess.run(command, capture_output=True, check=True).stdout
            ran += line.startswith(("curl ", *KEYS))
        if block.language == "python":
            exec(compile(block.text, f"{name}.md", "exec"), names)
            said = capsys.readouterr().out
            assert said or "asgi_app" in block.text  # which only defines an application
            ran += 1
        if block.language == "text":
            assert said == block.text, "the page shows another output"
    assert ran == PAGES[name]


def test_every_refusal_and_every_metric_is_explained(place: Place) -> None:
    source = "".join(path.read_text() for path in (PACKAGE / "service").rglob("*.py"))
    codes = set(re.findall(r'ApiError\(\s*(?:\d+),\s*"(\w+)"', source))
    assert len(codes) >= 17
    assert [code for code in codes if f"`{code}`" not in SETTINGS] == []
    metrics = ask(place.serving.url, "GET", "/metrics")[1].decode()
    families = re.findall(r"^# TYPE (driftbandits_\w+)", metrics, re.MULTILINE)
    named = {family for family in families if not family.endswith("_created")}
    assert len(named) == 9
    assert [family for family in named if f"`{family}" not in SETTINGS] == []


def test_limits_are_those_of_the_code() -> None:
    assert (
        f"{DEFAULT_LIMITS.body_bytes:,} bytes, within {DEFAULT_LIMITS.body_seconds:g} seconds"
        in SETTINGS
    )
    assert f"| {DEFAULT_LIMITS.in_flight:,}; one more is 429" in SETTINGS
    assert f"| {DEFAULT_LIMITS.answer_seconds:g} seconds, then 504" in SETTINGS
    assert f"| {AT_ONCE} per worker, which share two threads" in SETTINGS
    (sizes,) = re.findall(r"\| a policy's settings \| (.*) \|", SETTINGS)
    (others, largest) = re.findall(r"\| a policy's (`memory`.*) \| ([\d,]+) each \|", SETTINGS)[0]
    found = {name: size.replace(",", "") for name, size in re.findall(r"`(\w+)` ([\d,]+)", sizes)}
    found |= dict.fromkeys(re.findall(r"`(\w+)`", others), largest.replace(",", ""))
    assert {name: int(size) for name, size in found.items()} == LARGEST


def test_every_option_and_variable_is_explained() -> None:
    commands = [serve, *keys.commands.values()]
    options = {name for one in commands for option in one.params for name in option.opts}
    assert len(options) >= 9
    listed = [f"`{option}" for option in options if option.startswith("--")]
    assert [option for option in listed if option not in SETTINGS] == []
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    variables = set(re.findall(r'"(DRIFTBANDITS_\w+|XDG_\w+|RAY_ADDRESS)"', source))
    assert len(variables) == 6
    assert [name for name in variables if f"`{name}`" not in SETTINGS] == []


def test_every_setting_of_a_bandit_is_explained() -> None:
    settings = {*messages.NewBandit.__struct_fields__, *AgentSettings._fields, "cache"}
    assert [name for name in settings if f"\n| `{name}` |" not in SETTINGS] == []
