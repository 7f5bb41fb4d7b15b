"""What a base install lacks is told in one line, with the extra that brings it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from driftbandits.extras import BROUGHT_BY, BROUGHT_FOR, needs

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
COMMAND = "from driftbandits.cli.main import main; main()"


def without(modules: set[str], code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that cannot import some modules."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(modules=modules) + code, *arguments],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        (set(BROUGHT_BY), ["serve", "--without-keys"], "service"),
        ({"httptools"}, ["serve", "--without-keys"], "service"),
        ({"sqlalchemy"}, ["keys", "list"], "service"),
        ({"psycopg"}, ["keys", "list", "--database", "postgresql://nobody@127.0.0.1:1/none"],
         "postgresql"),
        (set(BROUGHT_BY), ["report", "results"], "report"),
        ({"matplotlib"}, ["compare", "--plot", "curves.png"], "report"),
        ({"jinja2"}, ["run", "paper/figure_1b", "--quick"], "report"),
    ],
)  # fmt: skip
def test_a_command_says_which_extra_it_needs(missing, arguments, extra, tmp_path: Path) -> None:
    said = without(missing, COMMAND, *arguments)
    wanted = f'driftbandits {arguments[0]} needs the extra "{extra}"'
    assert said.stderr == f"error: {wanted}: pip install 'driftbandits[{extra}]'\n"
    assert (said.returncode, said.stdout) == (2, "")


def test_a_public_name_says_which_extra_it_needs() -> None:
    said = without({"matplotlib"}, "from driftbandits import draw_curves")
    message = needs("driftbandits.draw_curves", "report")
    assert said.stderr.splitlines()[-1] == f"ImportError: {message}"


@pytest.mark.parametrize("code", ["import driftbandits; driftbandits.simulate", COMMAND])
def test_a_module_of_no_extra_is_told_as_python_does(code: str) -> None:
    said = without({"jax"}, code, "compare")
    assert said.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'jax'"
    assert said.returncode == 1


def test_the_extras_are_those_of_the_package() -> None:
    modules = {
        (re.sub(r"\W.*", "", requirement.replace("-", "_")), extra)
        for extra, requirements in EXTRAS.items()
        for requirement in requirements
    }
    assert set(BROUGHT_BY.items()) <= modules
    assert {("polars", extra) for extra in BROUGHT_FOR.values()} <= modules
    optional = {"service", "report", "ray", "postgresql", "gymnasium", "data"}
    known = {"driftbandits", "uvloop"}  # without uvloop the service takes Python's own loop
    assert {name for name, extra in modules if extra in optional} - known == set(BROUGHT_BY)
