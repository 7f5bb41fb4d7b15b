"""The tree shows the architecture: imports point down the layers, and the papers are in order."""

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import driftbandits
from tests import conftest
from tools.layers import LAYERS, as_markdown, home_of, level_of

ROOT = Path(__file__).parents[1]
PACKAGE = Path(driftbandits.__file__).parent
ROOTS = {"", "__main__", "service"}  # the public names, `python -m`, a package of packages


def modules() -> dict[str, Path]:
    """Every module of the package, by its name without `driftbandits.`; a package by its own."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_of(source: str) -> set[str]:
    """The modules of the package that a source imports, wherever in it; public names count, too."""
    found = {home for name in imported_names(source) if (home := module_of(name)) is not None}
    return found - ROOTS


def imported_names(source: str) -> Iterator[str]:
    """Everything imported, with dots: `from a import b` as `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(imported: str) -> str | None:
    """The module of the package that has it; None where that is another package."""
    package, *parts = imported.split(".")
    if package != "driftbandits":
        return None
    name, parent = ".".join(parts), ".".join(parts[:-1])
    return name if name in MODULES else driftbandits._HOMES.get(name, parent)


IMPORTS = {
    name: imports_of(path.read_text()) for name, path in MODULES.items() if name not in ROOTS
}


def test_every_module_has_a_layer() -> None:
    homes = {home_of(name) for name in IMPORTS}
    assert homes == {entry for layer in LAYERS for entry in layer.modules}


def test_imports_point_down() -> None:
    for name, imported in IMPORTS.items():
        for other in imported:
            home, below = home_of(name), home_of(other)
            assert home == below or level_of(below) < level_of(home), f"{name} imports {other}"


def test_no_module_imports_itself_by_a_detour() -> None:
    assert list(TopologicalSorter(IMPORTS).static_order())


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        ("from driftbandits.core import Policy", {"core"}),
        ("from driftbandits.simulation import engine", {"simulation.engine"}),
        ("from driftbandits import check", {"check"}),
        ("from driftbandits import compare", {"running.comparison"}),
        ("import driftbandits.running.store", {"running.store"}),
        ("def f():\n    import driftbandits.core as core, jax", {"core"}),
        ("from driftbandits import __version__\nimport driftbandits, numpy", set()),
    ],
)
def test_every_form_of_import_is_seen(source: str, imported: set[str]) -> None:
    assert imports_of(source) == imported


def test_no_module_only_passes_names_on() -> None:
    for name, path in MODULES.items():
        assert name == "" or not only_passes_on(path.read_text()), f"{name} only imports"


@pytest.mark.parametrize(
    ("source", "only"),
    [
        ("", False),
        ('"""A package."""', False),
        ("from a import b", True),
        ('"""Names."""\nfrom a import b, c\n__all__ = ["b", "c"]', True),
        ("import a\nb = a.b\nc: type = a.c", True),
        ("from a import b\nTABLE = {1: b}", False),
        ("import a\ndef b(): return a.b", False),
    ],
)
def test_aliases_and_lists_of_names_only_pass_on(source: str, only: bool) -> None:
    assert only_passes_on(source) == only


def only_passes_on(source: str) -> bool:
    body = ast.parse(source).body
    imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in body)
    return imports and all(map(passes_on, body))


def passes_on(node: ast.stmt) -> bool:
    """Whether a statement adds nothing: a docstring, an import, an alias, `__all__`."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()):
            return True
        case ast.Assign([ast.Name("__all__")]):
            return True
        case ast.Assign(value=ast.Name() | ast.Attribute()):
            return True
        case ast.AnnAssign(value=ast.Name() | ast.Attribute()):
            return True
        case _:
            return False


def test_the_map_is_the_table() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert as_markdown() in text, "run: make docs"


def test_tests_mirror_the_package() -> None:
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    tests = {path.parent.relative_to(ROOT / "tests") for path in ROOT.glob("tests/**/__init__.py")}
    others = {Path("docs"), Path("policies/transcriptions")}
    assert tests == packages | others


def test_the_report_imports_no_policy() -> None:
    for name, imported in IMPORTS.items():
        if home_of(name) == "report":
            assert not {home_of(other) for other in imported} & {"policies", "environments"}


def test_every_public_name_exists() -> None:
    assert {*driftbandits.__all__} == {*driftbandits._HOMES, "__version__"}
    for name in driftbandits.__all__:
        assert getattr(driftbandits, name) is not None


def test_version_is_in_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == driftbandits.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest.group(1) == driftbandits.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {driftbandits.__version__}\n" in citation


def test_every_dependency_is_explained_and_constrained() -> None:
    explained = (ROOT / "docs" / "reference" / "dependencies.md").read_text()
    constrained = (ROOT / "constraints.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    requirements = [
        *project["dependencies"],
        *(name for names in extras.values() for name in names),
    ]
    names = {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}
    for name in names - {"driftbandits"}:  # an extra may take in another one
        assert f"| {name} |" in explained
        assert f"\n{name}==" in f"\n{constrained}"
    for extra in extras:
        assert f"[{extra}]" in explained
    assert "://" not in constrained
    assert "@" not in constrained


def test_lists_of_tests_name_files_that_exist() -> None:
    """Or a file that is renamed would no longer be run first, or by `make check`."""
    for file in [*conftest.PAGES, *conftest.LONG, *conftest.QUICK]:
        assert (conftest.TESTS / file).is_file(), file
    for prefix in conftest.PAUSE_COVERAGE:
        assert list(conftest.TESTS.glob(f"{prefix}*")), prefix
    for group in conftest.QUICK_GROUPS:
        file, policy = group.split()
        assert file in conftest.BY_POLICY
        assert policy in driftbandits.POLICIES
    wanted = re.findall(r"tests/[\w./]+", (ROOT / "Makefile").read_text())
    for path in wanted:
        assert (ROOT / path).exists(), path
