"""The examples on the page of every policy and environment run, shortened to save time."""

import shlex
from pathlib import Path

import pytest

from driftbandits import ENVIRONMENTS, POLICIES, TRANSFORMATIONS
from driftbandits.explanations import explain
from tests.cli.test_commands import run
from tools.publish.page_blocks import code_blocks

SHORTER = {  # what a page says: what is run here
    "horizon=2000": "horizon=30",
    "runs=8": "runs=2",
    "-T 2000": "-T 30",
    "-n 8": "-n 2",
}
RIVALS = ["tracker", "thompson", "lin_ts"]  # each runs on its own page


@pytest.mark.parametrize("name", [*POLICIES, *ENVIRONMENTS, *TRANSFORMATIONS])
def test_examples_run(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    """Both compare the same, so nothing is compiled twice."""
    monkeypatch.chdir(tmp_path)
    page = explain(name)
    for shown, here in SHORTER.items():
        assert page.count(shown) == 1
        page = page.replace(shown, here)
    for rival in RIVALS:
        if rival != name:
            page = page.replace(f'"{rival}", ', "").replace(f"-p {rival} ", "")
    python, shell = code_blocks(page)
    exec(compile(python.text, name, "exec"), {})
    assert ": regret " in capsys.readouterr().out
    assert run(monkeypatch, *shlex.split(shell.text)[1:]) == 0
    assert "uniform" in capsys.readouterr().out
