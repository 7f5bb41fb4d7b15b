"""The pages of docs/ are those that the docstrings make."""

from pathlib import Path

import pytest

from driftbandits import ENVIRONMENTS, POLICIES, TRANSFORMATIONS
from driftbandits.catalogue import explain
from driftbandits.choice import settings_of
from tools.publish.pages import pages as found

DOCS = Path(__file__).parents[1] / "docs" / "reference"
TABLES = {**POLICIES, **ENVIRONMENTS, **TRANSFORMATIONS}


def test_pages_are_up_to_date() -> None:
    pages = found()
    written = {*DOCS.glob("policies/*.md"), *DOCS.glob("environments/*.md")}
    assert written == set(pages), "run: python -m tools.publish.pages"
    for path, text in pages.items():
        assert path.read_text() == text, f"{path.name} is old; run: python -m tools.publish.pages"


@pytest.mark.parametrize("name", TABLES)
def test_every_setting_is_explained(name: str) -> None:
    text = explain(name)
    for setting, default in settings_of(TABLES[name]).items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{setting}` |"))
        assert len(row.split("|")[3].strip()) > 3, f"{setting} is not explained"
        assert default is not None or "`none`" in row
