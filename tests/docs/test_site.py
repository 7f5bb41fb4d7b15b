"""The site is built without a warning, from nothing but this repository, and works offline."""

import re
from pathlib import Path

from tests.docs.built_site import site

__all__ = ["site"]  # a fixture: pytest finds it by name
ELSEWHERE = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["'](?:https?:)?//[^"']+""")
MAY_POINT_ELSEWHERE = ('rel="canonical"', 'rel="edit"')


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = [
            tag
            for tag in ELSEWHERE.findall(page.read_text())
            if not any(allowed in tag for allowed in MAY_POINT_ELSEWHERE)
        ]
        assert found == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", style.read_text()), style.name


def test_tutorials_can_be_downloaded_as_notebooks(site: Path) -> None:
    tutorials = [path for path in site.glob("tutorials/*.html") if path.stem != "index"]
    assert len(tutorials) >= 4
    for path in tutorials:
        assert path.with_suffix(".ipynb").exists()
        assert f'href="{path.stem}.ipynb"' in path.read_text()


def test_language_models_find_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    assert text.startswith("# driftbandits\n")
    links = re.findall(r"\]\((\S+)\)", text)
    assert len(links) >= 30
    assert [link for link in links if not (site / link).exists()] == []
    assert {"tutorials/which_policy.md", "explanation/tracker.md"} <= set(links)


def test_search_knows_the_policies(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text()
    assert "sw_ucb" in index
