"""What is published of the paper was made by the code, the files and the statistics of today."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driftbandits import read_experiment
from driftbandits.experiments.files import experiment_from, shipped
from tools.publish.paper import count_table, verdict_table
from tools.publish.paper_stamp import codes_of, paper, read, statistics_digest

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "evidence" / "paper"
PAPER = [name for name in shipped() if name.startswith("paper/")]
REMEDY = "run `python -m tools.publish.paper_stamp`; if numbers have changed, `make paper`"


def published_claims() -> list[dict[str, object]]:
    return json.loads((PUBLISHED / "claims.json").read_text())


def test_verdicts_are_those_of_the_full_size_run() -> None:
    claims = published_claims()
    assert count_table(claims) in (ROOT / "README.md").read_text()
    assert count_table(claims) in (PUBLISHED / "README.md").read_text()
    assert verdict_table(claims) in (PUBLISHED / "README.md").read_text()
    of_files = [
        (experiment.name, claim["text"])
        for experiment in map(read_experiment, PAPER)
        for claim in experiment.claims
    ]
    assert [(claim["experiment"], claim["text"]) for claim in claims] == of_files


@pytest.mark.parametrize("name", PAPER)
def test_the_full_size_run_is_that_of_the_shipped_file(name: str) -> None:
    experiment = read_experiment(name)
    folder = PUBLISHED / experiment.name
    published = experiment_from(
        experiment.name, json.loads((folder / "experiment.json").read_text())
    )
    assert replace(published, quick=None) == replace(experiment, quick=None)
    assert (folder / "figure.png").exists()
    assert experiment.drawing or (folder / "table.csv").exists()


@pytest.mark.parametrize("experiment", paper(), ids=lambda experiment: experiment.name)
def test_the_code_behind_each_line_is_that_of_this_release(experiment) -> None:
    stamped = read()["lines"][experiment.name]
    codes = codes_of(experiment)
    assert {label: codes[label] for label in stamped} == {
        label: line["code"] for label, line in stamped.items()
    }, REMEDY
    assert set(stamped) == {line.label for line in experiment.lines()}


def test_claims_are_judged_as_in_this_release() -> None:
    assert read()["statistics"] == statistics_digest(), REMEDY


def test_every_run_is_of_one_clean_revision() -> None:
    revisions = {
        json.loads(path.read_text())["revision"] for path in PUBLISHED.glob("*/provenance.json")
    }
    assert not any("dirty" in revision or "," in revision for revision in revisions), revisions
