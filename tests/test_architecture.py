"""The tree shows the architecture: imports point down the layers, and the papers are in order."""

import ast
import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import driftbandits

ROOT = Path(__file__).parents[1]
PACKAGE = Path(driftbandits.__file__).parent

LAYERS = [
    {"backend", "check"},
    {"core"},
    {"choice", "work", "keys", "waiting", "traces"},
    {"parts", "catalogue"},
    {"environments", "policies"},
    {"simulation", "best_arms"},
    {"metrics"},
    {"claims"},
    {"experiment", "verdicts"},
    {"tuning", "provenance", "theorem", "experiment_file"},
    {"results"},
    {"compute", "planning", "ranking"},
    {"cluster", "assembly"},
    {"runner"},
    {"comparison", "report", "neighbours", "agents"},
    {"service", "client"},
    {"console", "service_commands"},
    {"cli"},
]
LEVEL = {module: level for level, layer in enumerate(LAYERS) for module in layer}


def imports_of(path: Path) -> set[str]:
    """The parts of the package that a file imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "driftbandits":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("driftbandits."):
            found.add(node.module.split(".")[1])
    return found & set(LEVEL)


def modules() -> dict[Path, str]:
    files = (path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
    return {path: path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files}


def test_every_module_has_a_layer() -> None:
    assert set(modules().values()) == set(LEVEL)


def test_imports_point_down() -> None:
    for path, module in modules().items():
        for other in imports_of(path) - {module}:
            assert LEVEL[other] < LEVEL[module], f"{path} must not import {other}"


def test_the_report_imports_no_policy() -> None:
    for path, module in modules().items():
        if module == "report":
            assert not imports_of(path) & {"policies", "environments"}


def test_every_public_name_exists() -> None:
    for name in driftbandits.__all__:
        assert getattr(driftbandits, name) is not None


def test_version_is_in_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == driftbandits.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest.group(1) == driftbandits.__version__


def test_every_dependency_is_explained_and_constrained() -> None:
    explained = (ROOT / "docs" / "dependencies.md").read_text()
    constrained = (ROOT / "constraints.txt").read_text()
    for requirement in requires("driftbandits") or []:
        name = re.match(r"[\w.-]+", requirement)
        assert name
        assert name.group() in explained
        assert f"\n{name.group()}==" in f"\n{constrained}"
    assert "://" not in constrained
    assert "@" not in constrained
