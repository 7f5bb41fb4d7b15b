"""The examples on the page of every policy and environment run, with fewer and shorter runs."""

import shlex
from pathlib import Path

import pytest

from driftbandits import ENVIRONMENTS, POLICIES, TRANSFORMATIONS
from driftbandits.explanations import explain
from tests.cli.test_commands import run
from tools.publish.page_blocks import code_blocks

SHOWN = {"horizon": 2000, "runs": 8}
HERE = {"horizon": 30, "runs": 2}


@pytest.mark.parametrize("name", [*POLICIES, *ENVIRONMENTS, *TRANSFORMATIONS])
def test_examples_run(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    """Both compare the same, so nothing is compiled twice."""
    monkeypatch.chdir(tmp_path)
    python, shell = code_blocks(explain(name))
    text = python.text
    command = shell.text
    for setting, value in SHOWN.items():
        assert f"{setting}={value}" in text
        text = text.replace(f"{setting}={value}", f"{setting}={HERE[setting]}")
        command = command.replace(f"--{setting} {value}", f"--{setting} {HERE[setting]}")
    exec(compile(text, name, "exec"), {})
    assert ": regret " in capsys.readouterr().out
    assert run(monkeypatch, *shlex.split(command)[1:]) == 0
    assert "uniform" in capsys.readouterr().out
