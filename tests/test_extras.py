"""What a base install lacks is told in one line, with the extra that brings it."""

import re
import tomllib
from pathlib import Path

import pytest

from driftbandits.extras import BROUGHT_BY, BROUGHT_FOR, needs
from tests.missing_modules import without

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
COMMAND = "from driftbandits.cli.main import main; main()"


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        (set(BROUGHT_BY), ["serve", "--without-keys"], "service"),
        ({"httptools"}, ["serve", "--without-keys"], "service"),
        ({"uvicorn"}, ["serve", "--without-keys"], "service"),
        ({"sqlalchemy"}, ["keys", "list"], "service"),
        ({"psycopg"}, ["keys", "list", "--database", "postgresql://nobody@127.0.0.1:1/none"],
         "postgresql"),
        (set(BROUGHT_BY), ["report", "results"], "report"),
        ({"matplotlib"}, ["compare", "--plot", "curves.png"], "report"),
        ({"jinja2"}, ["run", "paper/figure_1b", "--quick"], "report"),
        ({"polars"}, ["compare", "-e", "table"], "data"),
        ({"river"}, ["compare", "-e", "table(file='river:image_segments')"], "data"),
        ({"ray"}, ["run", "paper/figure_1b", "--quick", "--out", "{folder}", "--on", "ray"], "ray"),
    ],
)  # fmt: skip
def test_a_command_says_which_extra_it_needs(missing, arguments, extra, tmp_path: Path) -> None:
    arguments = [each.format(folder=tmp_path) for each in arguments]
    said = without(missing, COMMAND, *arguments, folder=tmp_path)
    wanted = f'driftbandits {arguments[0]} needs the extra "{extra}"'
    assert said.stderr == f"error: {wanted}: pip install 'driftbandits[{extra}]'\n"
    assert (said.returncode, said.stdout) == (2, "")


COMPARED = "import driftbandits; compare = driftbandits.compare; "


@pytest.mark.parametrize(
    ("missing", "code", "what", "extra"),
    [
        ("matplotlib", "from driftbandits import draw_curves", "driftbandits.draw_curves",
         "report"),
        ("gymnasium", "import driftbandits.integrations.gymnasium",
         "driftbandits.integrations.gymnasium", "gymnasium"),
        ("polars", COMPARED + "compare(out='x', horizon=9, runs=1)", "compare(out=...)", "report"),
        ("polars", COMPARED + "compare(['uniform'], horizon=9, runs=1).table", "Results.table",
         "report"),
        ("polars", "import driftbandits; driftbandits.build_environment('table')",
         "the environment table", "data"),
    ],
)  # fmt: skip
def test_python_says_which_extra_it_needs(missing: str, code: str, what: str, extra: str) -> None:
    said = without({missing}, code)
    assert said.stderr.splitlines()[-1] == f"ModuleNotFoundError: {needs(what, extra)}"


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
    assert set(BROUGHT_BY.items()) - {("grpc", "ray")} <= modules, "Ray's own extra has grpc"
    assert {("polars", extra) for extra in BROUGHT_FOR.values()} <= modules
    optional = {"service", "report", "ray", "postgresql", "gymnasium", "data"}
    known = {"driftbandits", "uvloop"}  # without uvloop the service takes Python's own loop
    assert {name for name, extra in modules if extra in optional} - known == set(BROUGHT_BY) - {
        "grpc"
    }
