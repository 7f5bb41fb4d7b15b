"""What the base install does: `simulate`, `compare`, `Agent` and their commands, without Polars."""

from pathlib import Path

from tests.missing_modules import without

MISSING = ["polars", "matplotlib", "jinja2", "sqlalchemy", "msgspec"]
ASK = """
def missing(ask):
    try:
        ask()
    except ModuleNotFoundError as error:
        return error.name
"""
LIBRARY = """
import numpy as np
from driftbandits import (
    Agent, Experiment, POLICIES, compare, estimate, read_experiment, simulate,
)

trace = simulate("uniform", "bernoulli(num_arms=3)", horizon=50, runs=4)
assert np.isfinite(estimate(trace.regret[:, -1]).low)
results = compare(["uniform", "swa"], "bernoulli(num_arms=3)", horizon=50, runs=4)
assert list(results.final()) and results.provenance["pieces"]
np.testing.assert_array_equal(results.values["uniform"], trace.regret)
agent = Agent(["a", "b"], policy="uniform")
agent.reward(agent.decide().id, 1.0)
assert Experiment and "tracker" in POLICIES and read_experiment("paper/figure_1b").policies
assert missing(lambda: results.table) == "polars"
assert missing(lambda: compare(["uniform"], "bernoulli", out="nowhere")) == "polars"
"""
COMMANDS = """
from driftbandits.cli.main import cli

def command(*arguments):
    cli(arguments, standalone_mode=False)

small = ["-p", "uniform", "-e", "bernoulli(num_arms=3)", "-T", "50", "-n", "4"]
command("compare", *small)
command("list")
command("explain", "tracker")
assert missing(lambda: command("compare", *small, "--out", "out")) == "jinja2"
assert missing(lambda: command("compare", *small, "--plot", "curves.png")) == "matplotlib"
assert missing(lambda: command("run", "paper/figure_1b")) == "jinja2"
assert missing(lambda: command("reproduce", "--quick")) == "jinja2"
assert missing(lambda: command("report", "out")) == "jinja2"
"""


def without_extras(code: str, folder: Path) -> str:
    done = without(MISSING, ASK + code, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_library(tmp_path: Path) -> None:
    without_extras(LIBRARY, tmp_path)
    assert not list(tmp_path.iterdir()), "what needs more is refused before anything is written"


def test_the_commands(tmp_path: Path) -> None:
    shown = without_extras(COMMANDS, tmp_path)
    assert "regret after 50 pulls, 4 runs" in shown
    assert "rotating_wheel" in shown
    assert not list(tmp_path.iterdir()), "what needs more is refused before anything is written"
