"""The service's documents hold: their examples run in order, and they leave nothing out."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import driftbandits
from driftbandits.service.http.export import AT_ONCE
from driftbandits.service.http.protocol import DEFAULT_LIMITS
from tests.service.http.reader import Place, curl, place
from tests.service.serving import ask

__all__ = ["place"]  # a fixture: pytest finds it by name

DOCS = Path(__file__).parents[3] / "docs"
SOURCES = Path(driftbandits.__file__).parent / "service"
PORT = "127.0.0.1:8000"  # as the documents have it
KEYS = ("driftbandits keys create", "driftbandits keys list")


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("name", "runs"),
    [("how_to/run_the_service", 26), ("how_to/late_rewards", 8), ("reference/log", 4)],
)
def test_examples_run_in_order(
    name: str, runs: int, place: Place, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place.folder)
    text = (DOCS / f"{name}.md").read_text().replace(PORT, f"127.0.0.1:{place.serving.port}")
    names: dict[str, object] = {}
    ran = 0
    for language, block in blocks(text):
        lines = block.splitlines() if language == "sh" else []
        for line in lines:
            if line.startswith("curl "):
                curl(line, place.folder)
            elif line.startswith(KEYS):
                command = [sys.executable, "-m", "driftbandits", *shlex.split(line)[1:]]
                assert subprocess.run(command, capture_output=True, check=True).stdout
            ran += line.startswith(("curl ", *KEYS))
        if language == "python":
            exec(compile(block, f"{name}.md", "exec"), names)
            said = capsys.readouterr().out
            assert said or "asgi_app" in block  # which only defines an application
            ran += 1
    assert ran == runs
    if name == "reference/log":
        (figure,) = re.findall(r"It prints `([^`]+)`", text)
        assert figure in said
        assert "mean weight 0.973" in said


def test_every_refusal_and_every_metric_is_explained(place: Place) -> None:
    text = (DOCS / "how_to" / "run_the_service.md").read_text()
    source = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    codes = set(re.findall(r'ApiError\(\s*(?:\d+),\s*"(\w+)"', source))
    assert len(codes) >= 17
    assert [code for code in codes if f"`{code}`" not in text] == []
    metrics = ask(place.serving.url, "GET", "/metrics")[1].decode()
    families = re.findall(r"^# TYPE (driftbandits_\w+)", metrics, re.MULTILINE)
    named = {family for family in families if not family.endswith("_created")}
    assert len(named) == 9
    assert [family for family in named if f"`{family}" not in text] == []


def test_limits_are_those_of_the_code() -> None:
    text = (DOCS / "how_to" / "run_the_service.md").read_text()
    assert (
        f"{DEFAULT_LIMITS.body_bytes:,} bytes, within {DEFAULT_LIMITS.body_seconds:g} seconds"
        in text
    )
    assert f"| {DEFAULT_LIMITS.in_flight:,}; one more is 429" in text
    assert f"| {DEFAULT_LIMITS.answer_seconds:g} seconds, then 504" in text
    assert f"| {AT_ONCE} per worker, which share two threads" in text


@pytest.mark.parametrize("name", ["how_to/run_the_service", "how_to/late_rewards", "reference/log"])
def test_links_lead_somewhere(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert [link for link in links if not ((DOCS / name).parent / link).exists()] == []
