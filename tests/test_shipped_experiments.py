"""The experiments that ship are those of the paper, at its sizes."""

import json
from pathlib import Path

import pytest

from driftbandits.experiment_file import as_table, experiment_from, read_experiment, shipped

FIGURES = ["1a", "1b", "1c", "1d", "2", "3a", "3b", "4", "5", "6"]
PAPER = {"paper/theorem_1", *(f"paper/figure_{number}" for number in FIGURES)}

each_shipped = pytest.mark.parametrize("name", sorted(shipped()))


def test_all_of_the_paper_is_there() -> None:
    assert set(shipped()) >= PAPER


@each_shipped
def test_a_shipped_file_reads_and_says_what_it_is(name: str) -> None:
    experiment = read_experiment(name)
    assert experiment.name == Path(name).name
    assert experiment.title
    assert experiment.question
    assert experiment.reference
    if experiment.drawing is None:
        assert experiment.quick is not None
        assert set(experiment.quick) >= {"runs", "horizon"}
    assert len(experiment.parsed_claims()) == len(experiment.claims)


@each_shipped
def test_a_name_and_its_file_are_the_same(name: str) -> None:
    assert read_experiment(shipped()[name]) == read_experiment(name)


@pytest.mark.parametrize(
    ("names", "sizes", "policies"),
    [
        (
            ["figure_1a", "figure_1b", "figure_1c", "figure_1d"],
            {"runs": 100, "horizon": 20_000, "measure": "mean_regret"},
            6,
        ),
        (["figure_3a", "figure_3b"], {"horizon": 10_000, "measure": "regret"}, 6),
        (["figure_4"], {"runs": 10, "horizon": 30_000, "measure": "policy_regret"}, 7),
        (["figure_5", "figure_6"], {"horizon": 10_000, "measure": "regret"}, 1),
    ],
)
def test_the_paper_has_its_sizes(names, sizes, policies) -> None:
    for name in names:
        experiment = read_experiment(f"paper/{name}")
        assert {key: getattr(experiment, key) for key in sizes} == sizes, name
        assert len(experiment.policies) == policies, name
        assert len(experiment.environments) == 1, name


@pytest.mark.parametrize("name", ["figure_5", "figure_6"])
def test_the_energy_is_swept(name: str) -> None:
    experiment = read_experiment(f"paper/{name}")
    assert experiment.sweep is not None
    assert (experiment.sweep.of, experiment.sweep.setting) == ("policy", "energy")
    assert experiment.sweep.values == (0, 0.01, 0.03, 0.1, 0.3, 1)
    assert [line.policy for line in experiment.lines()] == [
        f"recurrent(energy={value})" for value in experiment.sweep.values
    ]


@pytest.mark.parametrize(
    ("name", "drawing"), [("figure_2", "best_arms"), ("theorem_1", "ratio_bound")]
)
def test_drawings_need_no_runs(name: str, drawing: str) -> None:
    experiment = read_experiment(f"paper/{name}")
    assert experiment.drawing == drawing
    assert experiment.lines() == []


@each_shipped
def test_a_shipped_file_and_its_table_are_inverse(name: str) -> None:
    experiment = read_experiment(name)
    table = as_table(experiment)
    assert experiment_from(experiment.name, table) == experiment
    through_json = json.loads(json.dumps(table))
    assert experiment_from(experiment.name, through_json) == experiment
    assert as_table(experiment_from(experiment.name, through_json)) == table
