"""Experiments as files: what ships is what the paper has, and what cannot be run is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from driftbandits import InputError
from driftbandits.experiment import (
    Experiment,
    as_table,
    experiment_from,
    read_experiment,
    shipped,
)

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
    assert (quick.runs, quick.horizon) == (4, 2000)
    only_runs = made_up(quick={"runs": 3}).made_quick()
    assert (only_runs.runs, only_runs.horizon) == (3, 10_000)
    assert made_up().made_quick() == made_up()


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ('title = "Two" policies', ["must be TOML", "line 1"]),
        (GOOD + "horizn = 5", ["key must be one of", "got 'horizn'; did you mean 'horizon'?"]),
        (GOOD.replace("title", "#"), ["title must be text"]),
        (GOOD.replace('"Two policies"', "2"), ["title must be text, got 2"]),
        (GOOD.replace('"Two policies"', '""'), ["title must be text, got ''"]),
        (GOOD + "question = 1", ["question must be text, got 1"]),
        (GOOD.replace("thompson", "tompson"), ["policies.ours", "did you mean 'thompson'?"]),
        (GOOD.replace("uniform", "swa(alpa=1)"), ["policies.other", "did you mean 'alpha'?"]),
        (GOOD.replace("uniform", "swa(alpha=-1)"), ["policies.other", "alpha must be a positive"]),
        (GOOD.replace("uniform", "swa("), ["policies.other", "written as name or name("]),
        (GOOD.replace('"uniform"', "3"), ["policies.other must be text, got 3"]),
        (GOOD.replace("bernoulli", "bernouli"), ["environment", "did you mean 'bernoulli'?"]),
        (GOOD.replace("num_arms", "arms"), ["environment", "a setting of bernoulli must be one"]),
        (GOOD.replace('"bernoulli(num_arms=3)"', "3"), ["environment must be text, got 3"]),
        (GOOD.replace("policies = ", "#"), ["policies must be at least one"]),
        (GOOD.replace("environment", "#"), ["environments must be at least one"]),
        (GOOD + 'environments = { a = "bernoulli" }', ["environments must be left out", "both"]),
        (GOOD + "horizon = 0", ["horizon must be a whole number of at least 1, got 0"]),
        (GOOD + "horizon = 1e4", ["horizon must be a whole number of at least 1, got 10000.0"]),
        (GOOD + 'runs = "many"', ["runs must be a whole number of at least 1, got 'many'"]),
        (GOOD + "runs = true", ["runs must be a whole number of at least 1, got True"]),
        (GOOD + "seed = -1", ["seed must be a whole number of at least 0, got -1"]),
        (GOOD + 'measure = "regrets"', ["measure must be one of", "did you mean 'regret'?"]),
        (GOOD + "measure = 1", ["measure must be", "got 1"]),
        (GOOD + 'scale = "lg"', ["scale must be one of linear, log", "did you mean 'log'?"]),
        (GOOD + "scale = 10", ["scale must be", "got 10"]),
        (GOOD + 'drawing = "best_arm"', ["drawing must be one of", "did you mean 'best_arms'?"]),
        (GOOD + "drawing = true", ["drawing must be", "got True"]),
        (GOOD + 'sweep = { policy = "alpha" }', ["sweep.values must be a list of at least two"]),
        (GOOD + 'sweep = { policy = "alpha", values = [1] }', ["sweep.values must be", "got [1]"]),
        (GOOD + 'sweep = { policy = "alpha", values = [1, 1] }', ["sweep.values", "different"]),
        (GOOD + 'sweep = { policy = "alpha", values = [1, 1.0] }', ["sweep.values", "different"]),
        (GOOD + "sweep = { values = [1, 2] }", ["sweep must be over a setting of `policy` or"]),
        (GOOD + "sweep = { policy = 1, values = [1, 2] }", ["sweep.policy must be the name of"]),
        (GOOD + 'sweep = { polcy = "alpha" }', ["sweep must be one of", "did you mean 'policy'?"]),
        (GOOD + "sweep = 3", ["sweep must be a table", "got 3"]),
        (
            GOOD + 'sweep = { policy = "alpha", values = [1, 2] }',
            ["policies.ours", "a setting of thompson must be", "got 'alpha'"],
        ),
        (
            GOOD + 'sweep = { environment = "period", values = [1, 2] }',
            ["environment", "a setting of bernoulli must be one of", "got 'period'"],
        ),
        (
            GOOD.replace("uniform", "swa(") + 'sweep = { policy = "alpha", values = [1, 2] }',
            ["policies.other", "written as name or name("],
        ),
        (
            GOOD.replace("arms=3)", "") + 'sweep = { environment = "num_arms", values = [2, 3] }',
            ["environment", "written as name or name("],
        ),
        (
            GOOD + '[[claims]]\ntext = "So."\nlower = "ours"\nhigher = "othr"',
            ["claims[1]", "higher must be one of ours, other", "did you mean 'other'?"],
        ),
        (
            GOOD + '[[claims]]\ntext = "So."\nfalls = "ours"\n[[claims]]\nfalls = "ours"',
            ["claims[2]", "text must be text"],
        ),
        (GOOD + '[[claims]]\ntext = "So."', ["claims[1]", "of one kind"]),
        (
            GOOD + '[[claims]]\ntext = "So."\nstable = "ours"\nfactor = 2',
            ["claims[1]", "stable must be left out (there are none)"],
        ),
        (
            GOOD + '[[claims]]\ntext = "So."\ncounterexample = "ratio_bound"',
            ["claims[1]", "counterexample must be"],
        ),
        (
            GOOD.replace("thompson", "swa").replace("uniform", "swa")
            + 'sweep = { policy = "alpha", values = [1, 2] }\n'
            + '[[claims]]\ntext = "So."\nstable = "ours"\nfactor = 2\nvalues = [3, 4]',
            ["claims[1]", "values must be"],
        ),
        (
            GOOD + '[[claims]]\ntext = "So."\nfalls = "ours"\nover = [0.5, 1]',
            ["claims[1]", "over must be a span that goes forward", "got [0.5, 1]"],
        ),
        (
            'title = "T"\ndrawing = "best_arms"\nenvironment = "bernoulli"',
            ["environments must be of two-dimensional contexts", "got 'bernoulli'"],
        ),
        (
            'title = "T"\ndrawing = "ratio_bound"\npolicies = { z = "nonsense" }',
            ["policies must be left out in a drawing"],
        ),
        (GOOD + "claims = 3", ["claims must be a list of tables, got 3"]),
        (GOOD + "quick = { run = 3 }", ["quick must be one of runs, horizon", "mean 'runs'?"]),
        (GOOD + "quick = { runs = 0 }", ["runs must be a whole number of at least 1, got 0"]),
        (
            GOOD + 'quick = { runs = "few" }',
            ["quick.runs must be a whole number of at least 1, got 'few'"],
        ),
        (GOOD + "quick = 3", ["quick must be a table", "got 3"]),
        (GOOD + 'readings = "one"', ["readings must be a list of texts, got 'one'"]),
        (GOOD + "readings = [1]", ["readings must be a list of texts, got 1"]),
        (GOOD + "times = [-1]", ["times must be a whole number of at least 0, got -1"]),
        (
            'title = "Arms"\ndrawing = "best_arms"\nenvironment = "weel"',
            ["environment", "did you mean 'wheel'?"],
        ),
        ('title = "Arms"\ndrawing = "best_arms"', ["environments must be at least one"]),
    ],
)
def test_a_mistake_names_the_file_the_key_and_the_rule(tmp_path: Path, text, messages) -> None:
    file = tmp_path / "mistaken.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_experiment(file)
    for message in (f"{file}: ", *messages):
        assert message in str(error.value)
    assert "\n" not in str(error.value), "a mistake is told in one line"


def test_a_file_without_a_mistake_is_read(tmp_path: Path) -> None:
    file = tmp_path / "right.toml"
    file.write_text(GOOD, encoding="utf-8")
    assert read_experiment(file) == read_experiment(str(file))
    assert read_experiment(file).name == "right"


def test_a_file_that_does_not_exist_is_refused_with_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_experiment(tmp_path / "nothing.toml")
    for name in (*PAPER, "a TOML file that exists", f"got '{tmp_path / 'nothing.toml'}'"):
        assert name in str(error.value)


@pytest.mark.parametrize("name", ["figure_1b", "paper/figure1b", "paper/figure_1b.toml"])
def test_a_name_that_is_nearly_right_gets_a_hint(name: str) -> None:
    with pytest.raises(InputError, match=r"did you mean 'paper/figure_1b'\?"):
        read_experiment(name)


def test_a_folder_is_no_experiment(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a text file that can be read") as error:
        read_experiment(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_bytes_are_no_experiment(tmp_path: Path) -> None:
    file = tmp_path / "bytes.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a text file that can be read"):
        read_experiment(file)


def test_a_quick_look_at_a_sweep_takes_some_of_its_values() -> None:
    quick = read_experiment("paper/figure_5").made_quick()
    assert [line.value for line in quick.lines()] == [0, 0.1, 1.0]
    assert (quick.runs, quick.horizon) == (4, 300)
    assert quick.parsed_claims()[0].values == (0.1, 1.0)
    assert experiment_from(quick.name, json.loads(json.dumps(as_table(quick)))).sweep == quick.sweep


@pytest.mark.parametrize("values", ["[3, 4]", "[0]", "0"])
def test_a_quick_look_at_other_values_is_refused(tmp_path: Path, values: str) -> None:
    text = 'sweep = { policy = "energy", values = [0, 1] }\npolicies = { a = "recurrent" }\n'
    file = tmp_path / "x.toml"
    file.write_text(
        f'title = "T"\nenvironment = "rotting"\nquick = {{ values = {values} }}\n{text}'
    )
    with pytest.raises(InputError, match=r"quick\.values must be"):
        read_experiment(file)
