"""A mistake in an experiment file is told with the file, the key and the rule."""

from pathlib import Path

import pytest

from driftbandits import InputError
from driftbandits.experiments.files import read_experiment

GOOD = """
title = "Two policies"
environment = "bernoulli(num_arms=3)"
policies = { ours = "thompson", other = "uniform" }
"""


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
            GOOD + '[[claims]]\ntext = "So."\nlower = "our"\nhigher = "every other policy"',
            ["claims[1]", "lower, where higher is 'every other policy'", "did you mean 'ours'?"],
        ),
        (
            GOOD + '[[claims]]\ntext = "So."\nfalls = "ours"\non = "each"',
            ["claims[1]", "on must be one of every environment, got 'each'"],
        ),
        (
            GOOD + '[[claims]]\ntext = ""\nfalls = "ours"\non = "every environment"',
            ["claims[1]", "text must be text, got ''"],
        ),
        (
            GOOD.replace("thompson", "swa").replace("uniform", "swa")
            + 'sweep = { policy = "alpha", values = [1, 2] }\n[[claims]]\ntext = "So."\n'
            + 'lower = "ours, alpha=1"\nhigher = "every other policy"',
            ["claims[1]", "higher must be given by names in a sweep"],
        ),
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
        (
            GOOD + 'tuning = { other = { x = [1] } }\nhindsight = "yes"',
            ["hindsight must be true or false, got 'yes'"],
        ),
        (GOOD + "hindsight = true", ["hindsight must be left out where nothing is tuned"]),
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
    for name in ("driftbandits list experiments", "a TOML file that exists", "nothing.toml"):
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


@pytest.mark.parametrize("values", ["[3, 4]", "[0]", "0"])
def test_a_quick_look_at_other_values_is_refused(tmp_path: Path, values: str) -> None:
    text = 'sweep = { policy = "energy", values = [0, 1] }\npolicies = { a = "recurrent" }\n'
    file = tmp_path / "x.toml"
    file.write_text(
        f'title = "T"\nenvironment = "rotting"\nquick = {{ values = {values} }}\n{text}'
    )
    with pytest.raises(InputError, match=r"quick\.values must be"):
        read_experiment(file)
