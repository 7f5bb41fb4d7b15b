"""The experiments that ship: those of the paper at its sizes, the field, and real data."""

import json
from pathlib import Path

import pytest

from driftbandits import ENVIRONMENTS, POLICIES, build_environment
from driftbandits.choice import parse
from driftbandits.experiments.files import as_table, experiment_from, read_experiment, shipped
from tests.policies.problems import looks_at_context

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
    assert len(experiment.parsed_claims()) >= len(experiment.claims)


def test_the_field_has_every_policy_and_kind_of_problem() -> None:
    free, contextual = (read_experiment(f"field/{name}") for name in ("context_free", "contextual"))
    compared = {parse("p", text).name for f in (free, contextual) for _, text in f.policies}
    assert compared == set(POLICIES) - {"oracle"}
    for name, _ in free.policies:
        assert name in ("recurrent", "tracker") or not looks_at_context(name)
    for field in (free, contextual):
        assert field.measure == "policy_regret"
        dims = {build_environment(text).spec.context_dim > 0 for _, text in field.environments}
        assert dims == {field is contextual}


def test_every_environment_is_in_a_comparison() -> None:
    names = [
        "field/context_free",
        "field/contextual",
        "tracker/judging",
        "tracker/judging_contexts",
    ]
    compared = [read_experiment(name) for name in names]
    worlds = {parse("e", text).name for file in compared for _, text in file.environments}
    featured = {name for name in ENVIRONMENTS if build_environment(name).spec.arm_dim}
    assert worlds == set(ENVIRONMENTS) - {"table"} - featured, "tables need data"


def test_the_judging_set_has_problems_of_its_own() -> None:
    """A policy that was chosen on the field is judged on other problems, by the same measure."""
    for field_name, name in (("context_free", "judging"), ("contextual", "judging_contexts")):
        field, judging = read_experiment(f"field/{field_name}"), read_experiment(f"tracker/{name}")
        assert not {text for _, text in field.environments} & {t for _, t in judging.environments}
        assert set(judging.policies) < set(field.policies)
        assert judging.measure == field.measure
        assert (judging.horizon, judging.seed) == (10_000, 1)
        dims = {build_environment(text).spec.context_dim > 0 for _, text in judging.environments}
        assert dims == {name == "judging_contexts"}
        tuned = {n: t for n, t in field.tuning.items() if n in dict(judging.policies)}
        assert dict(judging.tuning) == tuned
        assert judging.hindsight


TRACKERS = [name for name in sorted(shipped()) if name.startswith("tracker/")]


@pytest.mark.parametrize("name", [name for name in TRACKERS if "ablation" not in name])
def test_the_tracker_has_one_setting_against_all_in_hindsight(name: str) -> None:
    experiment = read_experiment(name)
    assert dict(experiment.policies)["tracker"] == "tracker"
    assert "tracker" not in experiment.tuning
    assert experiment.hindsight == bool(experiment.tuning)
    (claim,) = experiment.claims
    assert (claim["lower"], claim["higher"]) == ("tracker", "every other policy")
    assert len(experiment.parsed_claims()) == len(experiment.environments)


def test_the_tracker_is_measured_where_it_was_said_to_be() -> None:
    files = [read_experiment(name) for name in TRACKERS]
    worlds = [parse("e", text) for file in files for _, text in file.environments]
    assert {world.settings.get("num_arms") for world in worlds} >= {50, 200}
    for setting in ("delayed", "sleeping", "max_consecutive", "fatigue"):
        assert any(setting in world.settings for world in worlds), setting
    assert {file.horizon for file in files} >= {10_000, 30_000, 60_000}
    free, contextual = (read_experiment(f"field/{name}") for name in ("context_free", "contextual"))
    field = {text for file in (free, contextual) for _, text in file.environments}
    assert field <= {text for file in files for _, text in file.environments}


@pytest.mark.parametrize("name", [name for name in TRACKERS if "ablation" in name])
def test_ablations_change_one_setting(name: str) -> None:
    for _, text in read_experiment(name).policies[1:]:
        choice = parse("p", text)
        assert choice.name == "tracker"
        assert len(choice.settings) == 1


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
        (["figure_4"], {"runs": 100, "horizon": 30_000, "measure": "policy_regret"}, 7),
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
