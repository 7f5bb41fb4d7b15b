"""The pages of the site: their examples run, their lines wrap, their tables fit a screen."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.docs.reader import follow, needs_service
from tests.service.serving import Serving, served
from tools.publish.page_blocks import code_blocks, split

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))}
WRITTEN = {"README.md": ROOT / "README.md", "CONTRIBUTING.md": ROOT / "CONTRIBUTING.md", **PAGES}
ELSEWHERE = {  # pages whose examples another test runs
    "how_to/agent.md": "tests/agents/test_docs.py",
    "how_to/late_rewards.md": "tests/service/http/test_docs.py",
    "how_to/run_the_service.md": "tests/service/http/test_docs.py",
    "reference/log.md": "tests/service/http/test_docs.py",
    **{name: "tests/docs/test_notebooks.py" for name in PAGES if name.startswith("tutorials/")},
    **{
        name: "tests/docs/test_reference_examples.py"
        for name in PAGES
        if name.startswith(("reference/policies/", "reference/environments/"))
    },
}
LONGEST_LINE = 160
MOST_COLUMNS = 6


def runnable(path: Path) -> bool:
    return any(block.language in ("python", "sh") for block in code_blocks(path.read_text()))


FOLLOWED = [name for name, path in PAGES.items() if name not in ELSEWHERE and runnable(path)]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Serving]:
    with served(tmp_path / "driftbandits-data") as serving:
        yield serving


@pytest.mark.parametrize("name", FOLLOWED)
def test_examples_run_in_order(
    name: str, tmp_path: Path, monkeypatch, request: pytest.FixtureRequest
) -> None:
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    text = PAGES[name].read_text()
    port = request.getfixturevalue("service").port if needs_service(text) else None
    assert follow(text, name, port)


def test_every_other_page_is_run_by_another_test() -> None:
    for name, test in ELSEWHERE.items():
        assert name in PAGES
        assert (ROOT / test).exists()


@pytest.mark.parametrize("name", WRITTEN)
def test_lines_wrap(name: str) -> None:
    """Rows of tables cannot."""
    long = [
        line
        for line in WRITTEN[name].read_text().splitlines()
        if len(line) > LONGEST_LINE and not line.startswith("|")
    ]
    assert long == []


@pytest.mark.parametrize("name", WRITTEN)
def test_tables_have_at_most_six_columns(name: str) -> None:
    prose = "".join(part.text for part in split(WRITTEN[name].read_text()) if not part.language)
    wide = [
        line
        for line in prose.splitlines()
        if line.startswith("| ---") and line.count("|") - 1 > MOST_COLUMNS
    ]
    assert wide == []
