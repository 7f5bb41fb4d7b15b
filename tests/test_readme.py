"""The README is short, its examples run as they stand, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.reader import follow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MOST_WORDS = 900


def test_it_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_examples_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """The service's commands are run by tests/service/http/test_routes.py."""
    monkeypatch.chdir(tmp_path)
    assert follow(README, "README.md") == 3
    assert "tracker    regret" in capsys.readouterr().out
    assert Path("sinusoidal.png").exists()


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    for target in {*commands, *re.findall(r"`make (\w+)`", README)}:
        assert f"\n{target}: " in makefile


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text())
    files = [link.partition("#")[0] for link in links if not link.startswith(("http", "#"))]
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_it_counts_what_there_is() -> None:
    from driftbandits import ENVIRONMENTS, POLICIES

    assert f"{len(POLICIES)} policies, {len(ENVIRONMENTS)} environments" in README
