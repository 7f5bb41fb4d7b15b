"""The wheel, installed into an empty environment and used outside of the repository."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.measure_install import ROOT, build_wheel, install, size_of

LARGEST = 700  # megabytes of a base install
DATA = {
    "driftbandits/py.typed",
    "driftbandits/report/page.html",
    "driftbandits/service/http/pages/docs.html",
    "driftbandits/service/http/pages/page.html",
}
USER = """
from driftbandits import Agent, Trace, simulate

trace: Trace = simulate("thompson", "bernoulli", horizon=10)
reveal_type(Agent(["red", "green"]).decide().id)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with an environment of its own, which has the base install."""
    folder = tmp_path_factory.mktemp("wheel")
    install(str(build_wheel(folder / "built")), folder / "environment")
    return folder


def run(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment, which sees nothing of the repository."""
    program = place / "environment" / "bin" / command[0]
    environment = {"PATH": "", "HOME": str(place)}
    return subprocess.run(
        [program, *command[1:]], cwd=place, env=environment, capture_output=True, text=True
    )


def test_a_base_install_is_small(place: Path) -> None:
    assert size_of(place / "environment").megabytes <= LARGEST


def test_the_wheel_has_all_package_data(place: Path) -> None:
    (wheel,) = (place / "built").glob("*.whl")
    shipped = (path.relative_to(ROOT) for path in ROOT.glob("driftbandits/**/*.toml"))
    with zipfile.ZipFile(wheel) as archive:
        assert DATA | {path.as_posix() for path in shipped} <= {*archive.namelist()}


def test_the_shipped_experiments_are_listed(place: Path) -> None:
    done = run(place, "driftbandits", "list", "experiments")
    assert done.returncode == 0, done.stderr
    for name in ("paper/figure_1b", "field/context_free", "tracker/judging"):
        assert name in done.stdout


def test_compare_works(place: Path) -> None:
    done = run(place, "driftbandits", "compare", "--horizon", "200", "--runs", "2")
    assert done.returncode == 0, done.stderr
    assert "tracker" in done.stdout


def test_serve_says_which_extra_it_needs(place: Path) -> None:
    done = run(place, "driftbandits", "serve")
    wanted = 'error: driftbandits serve needs the extra "service": '
    assert done.stderr == wanted + "pip install 'driftbandits[service]'\n"
    assert done.returncode == 2


def test_the_client_imports_no_jax(place: Path) -> None:
    code = "import sys, driftbandits; driftbandits.Client; print({'jax', 'numpy'} & {*sys.modules})"
    assert run(place, "python", "-c", code).stdout == "set()\n"


def test_type_checkers_see_the_types(place: Path) -> None:
    (place / "user.py").write_text(USER)
    python = place / "environment" / "bin" / "python"
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python)]
    done = subprocess.run(
        [*mypy, "user.py"], cwd=place, env={"PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", "")
