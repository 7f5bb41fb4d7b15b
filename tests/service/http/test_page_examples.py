"""The page of a bandit without decisions shows how to ask for one: with values that it takes."""

import json
import shlex
from typing import Any

import pytest

from tests.browser import Tab, browser, tab
from tests.service.http.reader import Place, curl, place
from tests.service.serving import ask

__all__ = ["browser", "place", "tab"]  # fixtures: pytest finds them by name

KINDS = {
    "age": "number(low=18, high=120, required=true)", "basket": "number(required=true)",
    "country": "category(values=['it\\'s', 'AT'], required=true)",
    "city": "category(required=true)", "hour": "cyclic(24, required=true)",
    "new": "flag(required=true)",
}  # fmt: skip
EXAMPLES = {"age": 69, "basket": 1, "country": "it's", "city": "text", "hour": 12, "new": True}
FEATURES = {"topic": "category(values=['\\xa0arts'])", "size": "number(low=1, high=2)"}
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "without": ({"arms": ["a"]}, [{}]),
    "plain": (
        {"arms": ["a"], "context": ["age", "x"], "context_ranges": {"age": [18, 120]}},
        [{"context": [69, 0]}],
    ),
    "typed": ({"arms": ["a"], "context": KINDS}, [{"context": EXAMPLES}]),
    "plain features": (
        {"arms": {"a": {"x": 2}, "b": None}}, [{}, {"arms": {"a": [2], "b": [0]}}],
    ),
    "typed features": (
        {"arms": {"a": None, "b": {"size": 2}, "c": None}, "features": FEATURES, "context": ["x"]},
        [
            {"context": [0]},
            {"context": [0], "arms": {"a": {"topic": "\xa0arts", "size": 1.5}, "b": {"size": 2}}},
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_its_examples_are_taken(case: str, tab: Tab, place: Place) -> None:
    settings, expected = CASES[case]
    body = {"name": case, "policy": "lin_ucb", **settings}
    assert ask(place.serving.url, "POST", "/v1/bandits", body)[0] == 201
    tab.open(f"{place.serving.url}/#/bandit/{case}", "document.querySelector('#view pre')")
    lines = tab.run("[...document.querySelectorAll('#view pre')].map(e => e.textContent)")
    assert [json.loads(shlex.split(line)[-1]) for line in lines] == expected
    for line in lines:
        curl(line, place.folder)
    assert tab.complaints() == []
