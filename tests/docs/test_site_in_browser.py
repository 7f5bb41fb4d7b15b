"""The site opened from a folder, in a real browser: search, a phone, nothing from elsewhere."""

from pathlib import Path

import pytest

from tests.browser import Tab, browser, tab
from tests.docs.built_site import site

__all__ = ["browser", "site", "tab"]  # fixtures: pytest finds them by name
PAGES = [
    "index.html",
    "tutorials/which_policy.html",
    "reference/policies/tracker.html",
    "reference/python/simulation.html",
    "evidence/paper/index.html",
]


def test_search_finds_a_policy(site: Path, tab: Tab) -> None:
    tab.open(f"{(site / 'index.html').as_uri()}?q=sw_ucb", "document.querySelector('.md-search')")
    links = "[...document.querySelectorAll('.md-search-result__link')].slice(0, 3)"
    tab.wait(f"{links}.some(link => link.href.includes('policies/sw_ucb.html'))")
    assert tab.run("document.querySelector('.md-search-result__meta').textContent").strip()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_asks_nobody(name: str, site: Path, tab: Tab) -> None:
    tab.resize(360)
    tab.open((site / name).as_uri(), "document.querySelector('h1')")
    assert tab.run("document.documentElement.scrollWidth") <= 360
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
    assert tab.run(broken) == []
    asked = [event["request"]["url"] for event in tab.events("Network.requestWillBeSent")]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
