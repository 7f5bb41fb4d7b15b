"""The README's examples run as they stand, and its tables are complete."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from driftbandits import ENVIRONMENTS, MEASURES, POLICIES, read_experiment
from driftbandits.experiments.claims import ALSO, KINDS
from driftbandits.experiments.files import DRAWINGS, KEYS, experiment_from, shipped
from tests.cli.test_commands import run
from tools.publish.paper import verdict_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


def test_examples_run_in_their_order(tmp_path: Path, monkeypatch, capsys) -> None:
    """As a reader gives them, who has saved the README's experiment as mine.toml."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(blocks("toml")[0])
    for language, text in re.findall(
        r"^```(sh|python)\n(.*?)^```", README, re.MULTILINE | re.DOTALL
    ):
        for example in [text] if language == "python" else text.splitlines():
            if language == "python":
                exec(compile(example, "README.md", "exec"), {})
            elif example.startswith("driftbandits"):
                assert run(monkeypatch, *shlex.split(example)[1:]) == 0, example
            else:
                continue
            assert capsys.readouterr().out, example
    assert Path("sinusoidal.png").exists()
    assert Path("limit.png").exists()


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
        assert (ROOT / target.partition("#")[0]).exists(), target


def test_verdicts_are_those_of_the_full_size_run() -> None:
    claims = json.loads((ROOT / "docs" / "evidence" / "paper" / "claims.json").read_text())
    assert verdict_table(claims) in README
    shipped_claims = [
        (experiment.name, claim["text"])
        for experiment in (read_experiment(name) for name in shipped() if name.startswith("paper/"))
        for claim in experiment.claims
    ]
    assert [(claim["experiment"], claim["text"]) for claim in claims] == shipped_claims


@pytest.mark.parametrize("name", [name for name in shipped() if name.startswith("paper/")])
def test_the_full_size_run_is_that_of_the_shipped_file(name: str) -> None:
    experiment = read_experiment(name)
    folder = ROOT / "docs" / "evidence" / "paper" / experiment.name
    published = experiment_from(
        experiment.name, json.loads((folder / "experiment.json").read_text())
    )
    assert replace(published, quick=None) == replace(experiment, quick=None)
    assert (folder / "figure.png").exists()
    assert experiment.drawing or (folder / "table.csv").exists()


def test_docs_name_every_key_and_kind_of_claim() -> None:
    text = (ROOT / "docs" / "reference" / "experiment_files.md").read_text()
    for word in [
        *KEYS,
        *KINDS,
        *MEASURES,
        *DRAWINGS,
        *(key for keys in ALSO.values() for key in keys),
    ]:
        assert f"`{word}" in text, word


def test_the_example_of_the_docs_can_be_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "experiment_files.md").read_text()
    (example,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(example)
    assert read_experiment(tmp_path / "mine.toml").claims
