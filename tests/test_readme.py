"""The README's examples run as they stand, and its tables are complete."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from driftbandits import ENVIRONMENTS, POLICIES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"), ids=["use", "add_a_policy"])
def test_python_examples_run(code: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out
    assert "draw_curves" not in code or (tmp_path / "sinusoidal.png").exists()


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.mark.parametrize("line", [c for c in COMMANDS if c.startswith("driftbandits")])
def test_command_lines_run(line: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "driftbandits.cli", *shlex.split(line)[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {line.split()[1] for line in COMMANDS if line.startswith("make")}
    assert targets == {"demo", "test"}
    for target in targets | set(re.findall(r"`make (\w+)`", README)):
        assert f"\n{target}: " in makefile


def test_tables_are_complete() -> None:
    for name in [*POLICIES, *ENVIRONMENTS]:
        assert f"`{name}`" in README, f"{name} is not in the README"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target
