"""Experiments as files: from a table to lines, sizes and back."""

import json
from typing import Any

import pytest

from driftbandits import InputError
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.files import as_table, experiment_from, read_experiment, shipped

FIGURES = ["1a", "1b", "1c", "1d", "2", "3a", "3b", "4", "5", "6"]
PAPER = {"paper/theorem_1", *(f"paper/figure_{number}" for number in FIGURES)}
GOOD = """
title = "Two policies"
environment = "bernoulli(num_arms=3)"
policies = { ours = "thompson", other = "uniform" }
"""
TABLE = {
    "title": "Two policies",
    "environment": "bernoulli(num_arms=3)",
    "policies": {"ours": "swa(alpha=0.1)", "other": "uniform"},
}

each_shipped = pytest.mark.parametrize("name", sorted(shipped()))


def made_up(**changes: Any) -> Experiment:
    table = {**TABLE, **changes}
    return experiment_from("made_up", {k: v for k, v in table.items() if v is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"environment": None, "environments": {"still": "bernoulli", "moving": "sinusoidal"}},
        {"sweep": {"environment": "num_arms", "values": [3, 4]}, "seed": 7, "scale": "log"},
        {"sweep": {"policy": "alpha", "values": [0.1, 0.2]}, "policies": {"swa": "swa"}},
        {"claims": [{"text": "So.", "lower": "ours", "higher": "other", "at": 1.0}]},
        {"quick": {"runs": 2}, "readings": ["As it says."], "question": "Why?"},
    ],
)
def test_any_experiment_and_its_table_are_inverse(changes) -> None:
    experiment = made_up(**changes)
    assert experiment_from("made_up", json.loads(json.dumps(as_table(experiment)))) == experiment


def test_what_is_left_out_has_a_default() -> None:
    experiment = made_up()
    assert (experiment.horizon, experiment.runs, experiment.seed) == (10_000, 20, 0)
    assert (experiment.measure, experiment.scale) == ("regret", "linear")
    assert experiment.claims == experiment.readings == ()


def test_lines_in_one_environment_have_the_policies_names() -> None:
    lines = made_up().lines()
    assert [line.label for line in lines] == ["ours", "other"]
    assert [line.policy for line in lines] == ["swa(alpha=0.1)", "uniform"]
    assert {line.environment for line in lines} == {"bernoulli(num_arms=3)"}
    assert {line.value for line in lines} == {None}
    assert made_up().sweeps() == {}


def test_lines_in_several_environments_name_them() -> None:
    worlds = {"still": "bernoulli", "moving": "sinusoidal"}
    lines = made_up(environment=None, environments=worlds).lines()
    assert [line.label for line in lines] == [
        "ours on still",
        "other on still",
        "ours on moving",
        "other on moving",
    ]
    assert [line.environment for line in lines] == ["bernoulli"] * 2 + ["sinusoidal"] * 2
    assert [line.environment_name for line in lines] == ["still"] * 2 + ["moving"] * 2


def test_lines_of_a_policys_sweep() -> None:
    swept = made_up(
        policies={"ours": "swa(alpha=0.1, doubling=true)", "plain": "swa"},
        sweep={"policy": "alpha", "values": [0.2, 0.3]},
    )
    assert [(line.label, line.policy) for line in swept.lines()] == [
        ("ours, alpha=0.2", "swa(alpha=0.2, doubling=true)"),
        ("ours, alpha=0.3", "swa(alpha=0.3, doubling=true)"),
        ("plain, alpha=0.2", "swa(alpha=0.2)"),
        ("plain, alpha=0.3", "swa(alpha=0.3)"),
    ]
    assert swept.sweeps() == {
        "ours": {0.2: "ours, alpha=0.2", 0.3: "ours, alpha=0.3"},
        "plain": {0.2: "plain, alpha=0.2", 0.3: "plain, alpha=0.3"},
    }


def test_lines_of_an_environments_sweep() -> None:
    lines = made_up(sweep={"environment": "num_arms", "values": [2, 5]}).lines()
    assert [(line.label, line.environment, line.value) for line in lines] == [
        ("ours, num_arms=2", "bernoulli(num_arms=2)", 2),
        ("ours, num_arms=5", "bernoulli(num_arms=5)", 5),
        ("other, num_arms=2", "bernoulli(num_arms=2)", 2),
        ("other, num_arms=5", "bernoulli(num_arms=5)", 5),
    ]
    assert [line.group for line in lines] == ["ours", "ours", "other", "other"]
    assert {line.policy for line in lines} == {"swa(alpha=0.1)", "uniform"}


def test_lines_of_a_sweep_in_several_environments() -> None:
    swept = made_up(
        policies={"ours": "swa"},
        environment=None,
        environments={"still": "bernoulli", "moving": "sinusoidal"},
        sweep={"policy": "alpha", "values": [0.2, 0.3]},
    )
    assert list(swept.sweeps()) == ["ours on still", "ours on moving"]
    assert swept.lines()[-1].label == "ours on moving, alpha=0.3"


def test_another_size_is_the_same_question() -> None:
    experiment = made_up(quick={"runs": 3, "horizon": 50})
    small = experiment.with_size(runs=2, seed=9)
    assert (small.runs, small.horizon, small.seed) == (2, 10_000, 9)
    assert small.with_size(runs=20, seed=0) == experiment
    assert experiment.with_size() == experiment
    assert experiment.with_size(seed=0).seed == 0


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"horizon": -5}, "horizon must be a whole number of at least 1, got -5"),
        ({"horizon": 1.5}, "horizon must be a whole number of at least 1, got 1.5"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(size, message) -> None:
    with pytest.raises(InputError) as error:
        made_up().with_size(**size)
    assert message in str(error.value)


def test_a_quick_look_is_small() -> None:
    quick = read_experiment("paper/figure_4").made_quick()
    assert (quick.runs, quick.horizon) == (16, 30_000)
    only_runs = made_up(quick={"runs": 3}).made_quick()
    assert (only_runs.runs, only_runs.horizon) == (3, 10_000)
    assert made_up().made_quick() == made_up()


def test_a_quick_look_at_a_sweep_takes_some_of_its_values() -> None:
    quick = read_experiment("paper/figure_5").made_quick()
    assert [line.value for line in quick.lines()] == [0, 0.3, 1.0]
    assert (quick.runs, quick.horizon) == (40, 10_000)
    assert quick.parsed_claims()[0].values == (0.3, 1.0)
    assert experiment_from(quick.name, json.loads(json.dumps(as_table(quick)))).sweep == quick.sweep
