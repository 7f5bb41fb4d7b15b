"""The service's documents hold: their examples run in order, and /docs shows and tries the API."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import driftbandits
from driftbandits.service.http import USUAL
from tests.browser import Tab, browser, tab
from tests.serving import Serving, ask, served

__all__ = ["browser", "tab"]  # fixtures: pytest finds them by name

DOCS = Path(__file__).parents[1] / "docs"
SOURCES = Path(driftbandits.__file__).parent / "service"
PORT = "127.0.0.1:8000"  # as the documents have it
KEYS = ("driftbandits keys create", "driftbandits keys list")
ORDER = [
    "create", "bandits", "bandit", "add_arm", "retire_arm", "restore_arm", "decide", "decide_batch",
    "reward", "reward_batch", "log", "series", "metrics", "healthy", "ready", "delete",
]  # fmt: skip


class Place(NamedTuple):
    """Where a reader gives the documents' commands, beside a service with the usual folder."""

    folder: Path
    serving: Serving


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("reader")
    with served(folder / "driftbandits-data") as serving:
        yield Place(folder, serving)


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def curl(line: str, folder: Path) -> None:
    """Runs a line; a comment after it says which refusal it shows."""
    command, _, expected = line.partition("  # ")
    wanted = ["-sS", "-w", "\n%{http_code}"]
    environment = {**os.environ, "KEY": ""}
    expanded = command.replace("$KEY", environment["KEY"])
    done = subprocess.run(
        [*shlex.split(expanded), *wanted], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, (line, done.stderr)
    status = int(done.stdout.splitlines()[-1])
    assert status == int(expected) if expected else status in (200, 201, 204), (line, done.stdout)


@pytest.mark.parametrize(("name", "runs"), [("service", 25), ("rewards", 1), ("log", 4)])
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
                command = [sys.executable, "-m", "driftbandits.cli", *shlex.split(line)[1:]]
                assert subprocess.run(command, capture_output=True, check=True).stdout
            ran += line.startswith(("curl ", *KEYS))
        if language == "python":
            exec(compile(block, f"{name}.md", "exec"), names)
            said = capsys.readouterr().out
            assert said
            ran += 1
    assert ran == runs
    if name == "log":
        (figure,) = re.findall(r"It prints `([^`]+)`", text)
        assert figure in said
        assert "mean weight 0.973" in said


def test_every_refusal_and_every_metric_is_explained(place: Place) -> None:
    text = (DOCS / "service.md").read_text()
    source = "".join(path.read_text() for path in SOURCES.glob("*.py"))
    codes = set(re.findall(r'Refusal\(\s*(?:\d+),\s*"(\w+)"', source))
    assert len(codes) >= 17
    assert [code for code in codes if f"`{code}`" not in text] == []
    metrics = ask(place.serving.url, "GET", "/metrics")[1].decode()
    families = re.findall(r"^# TYPE (driftbandits_\w+)", metrics, re.MULTILINE)
    named = {family for family in families if not family.endswith("_created")}
    assert len(named) == 9
    assert [family for family in named if f"`{family}" not in text] == []


def test_limits_are_those_of_the_code() -> None:
    text = (DOCS / "service.md").read_text()
    assert f"{USUAL.body_bytes:,} bytes, within {USUAL.body_seconds:g} seconds" in text
    assert f"| {USUAL.in_flight:,}; one more is 429" in text
    assert f"| {USUAL.answer_seconds:g} seconds, then 429" in text


@pytest.mark.parametrize("name", ["service", "rewards", "log"])
def test_links_lead_somewhere(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


def open_docs(tab: Tab, place: Place) -> dict:
    tab.open(place.serving.url + "/docs", "document.querySelector('.operation')")
    return ask(place.serving.url, "GET", "/openapi.json")[1]


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_shows_every_operation(width: int, tab: Tab, place: Place) -> None:
    tab.resize(width)
    described = open_docs(tab, place)
    wanted = {f"{m.upper()} {path}" for path, ms in described["paths"].items() for m in ms}
    shown = tab.run("[...document.querySelectorAll('.operation')].map(e => e.dataset.operation)")
    assert sorted(shown) == sorted(wanted)
    assert len(wanted) == len(ORDER) == tab.run("document.querySelectorAll('.index a').length")
    tab.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert tab.run("document.documentElement.scrollWidth - innerWidth") == 0
    fields = tab.run("byId('create').querySelector('.fields').textContent")
    for word in described["components"]["schemas"]["NewBandit"]["properties"]:
        assert word in fields
    assert "86400" in fields
    assert "role admin" in tab.run("byId('create').querySelector('.role').textContent")
    assert tab.run("document.scripts.length + document.images.length") == 1
    urls = [event["request"]["url"] for event in tab.events("Network.requestWillBeSent")]
    assert [u for u in urls if not u.startswith((place.serving.url + "/", "data:"))] == []
    assert tab.complaints() == []


def test_every_operation_can_be_tried(tab: Tab, place: Place) -> None:
    ask(place.serving.url, "DELETE", "/v1/bandits/shop")
    open_docs(tab, place)
    tab.run("window.confirm = () => true; document.querySelectorAll('.try').forEach(e => "
            "{ e.open = true; })")  # fmt: skip
    statuses = {}
    for operation in ORDER:
        card = f"byId('{operation}')"
        tab.run(f"{card}.querySelector('form').requestSubmit()")
        tab.wait(f"Boolean({card}.querySelector('.status'))")
        statuses[operation] = tab.run(f"{card}.querySelector('.status').textContent")
    created = {"create": "201", "add_arm": "201", "delete": "204"}
    assert statuses == {operation: created.get(operation, "200") for operation in ORDER}
    assert '"learned"' in tab.run("byId('reward').querySelector('.output pre').textContent")
    assert tab.complaints() == []


def test_its_curl_lines_run_as_they_stand(tab: Tab, place: Place) -> None:
    ask(place.serving.url, "DELETE", "/v1/bandits/shop")
    open_docs(tab, place)
    for operation in ORDER:
        curl(tab.run(f"byId('{operation}').querySelector('.curl').textContent"), place.folder)
    tab.run("byId('decide-body').value = '{\"id\": \"it\\'s\"}'; "
            "byId('decide-body').dispatchEvent(new Event('input'))")  # fmt: skip
    line = tab.run("byId('decide').querySelector('.curl').textContent")
    assert json.loads(shlex.split(line)[-1]) == {"id": "it's"}


def test_the_key_is_kept_and_sent(tab: Tab, tmp_path: Path) -> None:
    with served(tmp_path, keys=True) as serving:
        key = re.findall(r"\bdb_\S+", "".join(serving.said))[0]
        tab.open(serving.url + "/docs", "document.querySelector('.operation')")
        tab.run(f"byId('key').value = '{key}'; byId('key').dispatchEvent(new Event('input'))")
        tab.open(serving.url + "/docs?again", "document.querySelector('.operation')")
        assert tab.run("byId('key').value") == key
        tab.run("byId('bandits').querySelector('form').requestSubmit()")
        tab.wait("Boolean(byId('bandits').querySelector('.status'))")
        assert tab.run("byId('bandits').querySelector('.status').textContent") == "200"
        assert ask(serving.url, "GET", "/v1/bandits")[0] == 401
        assert tab.complaints() == []
