"""The reference is complete: every public name with an example that runs, every command."""

import dataclasses
import inspect
import re
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import click
import markdown
import matplotlib as mpl
import pytest

import driftbandits
from driftbandits.cli.main import cli
from tests.docs.reader import follow, needs_service
from tests.service.serving import Serving, served

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {path.name: path.read_text() for path in sorted(REFERENCE.glob("python/*.md"))}
EXAMPLE = re.compile(r"^( *)```python\n.*?^\1```\n", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(?:::: |### `?)driftbandits\.([\w.]+)", re.MULTILINE)
NOT_MADE_BY_USERS = {"AgentDecision", "InputError", "ServiceError"}
NEXT = re.compile(r"^(?:::: |#)", re.MULTILINE)


def entries() -> list[str]:
    """What the pages have, once for each time."""
    return [name for page in PAGES.values() for name in ENTRY.findall(page)]


def entry_of(name: str) -> str:
    """What a page itself says of a name, from its heading to the next one."""
    for page in PAGES.values():
        for found in ENTRY.finditer(page):
            if found[1] == name:
                rest = page[found.end() :]
                end = NEXT.search(rest)
                return rest[: end.start()] if end else rest
    return ""


def text_of(name: str) -> str:
    """All that a reader sees of a name: its docstring and its entry; a constant has only that."""
    value = getattr(driftbandits, name)
    docstring = inspect.getdoc(value) or "" if callable(value) else ""
    constructor = inspect.getdoc(value.__init__) or "" if inspect.isclass(value) else ""
    return f"{docstring}\n{constructor}\n{entry_of(name)}\n"


def examples_of(name: str) -> str:
    found = [textwrap.dedent(block[0]) for block in EXAMPLE.finditer(text_of(name))]
    return "\n".join(found)


def inputs_of(name: str) -> list[str]:
    """The arguments of a function, or the fields of a class."""
    value = getattr(driftbandits, name)
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if name in NOT_MADE_BY_USERS or not callable(value):
        return []
    return [each for each in inspect.signature(value).parameters if each != "self"]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Serving]:
    with served(tmp_path / "driftbandits-data") as serving:
        yield serving


def test_every_public_name_is_in_one_page() -> None:
    public = [name for name in entries() if "." not in name]
    assert sorted(public) == sorted(driftbandits.__all__)


@pytest.mark.parametrize("name", driftbandits.__all__)
def test_every_public_name_has_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch, request: pytest.FixtureRequest
) -> None:
    examples = examples_of(name)
    assert re.search(rf"^from driftbandits import .*\b{name}\b", examples, re.MULTILINE)
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    port = request.getfixturevalue("service").port if needs_service(examples) else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert follow(examples, name, port)


@pytest.mark.parametrize("name", driftbandits.__all__)
def test_every_argument_is_explained(name: str) -> None:
    text = text_of(name)
    for each in inputs_of(name):
        assert re.search(rf"^\W*{each}\W*: \w|^\W*{each}: `", text, re.MULTILINE), each


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


CONTEXT = click.Context(cli)
COMMANDS = dict(commands(cli, "driftbandits"))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, option.name


@pytest.fixture(scope="module")
def command_page() -> str:
    """As the site shows it."""
    page = (REFERENCE / "command_line.md").read_text()
    return markdown.markdown(page, extensions=["attr_list", "mkdocs-click"])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_in_the_page(path: str, command_page: str) -> None:
    _, heading, rest = command_page.partition(f'id="{path.replace(" ", "-")}"')
    assert heading
    section = re.split(r"<h\d ", rest)[0]
    for option in COMMANDS[path].params:
        names = option.opts if isinstance(option, click.Option) else [option.make_metavar(CONTEXT)]
        assert all(name in section for name in names), option.name


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")) + sorted(REFERENCE.glob("*/")))
def test_the_index_has_every_page(page: Path) -> None:
    index = (REFERENCE / "README.md").read_text()
    wanted = [page.name] if page.is_file() else [f"python/{name}" for name in PAGES]
    if page.is_dir() and page.name != "python":
        wanted = [f"{page.name}/README.md"]
    assert page.name == "README.md" or all(f"]({name})" in index for name in wanted)
