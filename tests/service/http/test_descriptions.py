"""Bandits as they are shown: the same however they were written, enough to create them again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftbandits.service.http.descriptions import UNKNOWN, known_of
from driftbandits.service.store.records import BanditRow
from driftbandits.service.store.store import Store
from tests.service.serving import ask, served

PATH = "/v1/bandits"
NEWS: dict[str, Any] = {
    "name": "news", "policy": "thompson", "seed": 1,
    "arms": {"a": {"topic": "sport", "age": 1}, "b": {"age": 0.1, "topic": None}},
    "context": {"country": "category", "hour": "cyclic( 24 )", "age": "number(low=0, high=120)"},
    "features": {"topic": "category()", "age": "number"},
}  # fmt: skip
SHOWN: dict[str, Any] = {
    "arms": {"a": {"topic": "sport", "age": 1.0}, "b": {"age": 0.1}},
    "context": {
        "country": "category(buckets=32)", "hour": "cyclic(period=24)",
        "age": "number(low=0.0, high=120.0)",
    },
    "features": {"topic": "category(buckets=32)", "age": "number"},
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "name": "plain", "policy": "thompson", "arms": {"a": {"x": 0.1, "y": 2}, "b": [3, 4]},
    "context": ["age"], "context_ranges": {"age": [0, 120]},
}  # fmt: skip
FLAGS: dict[str, Any] = {  # which 0.15.0 took for numbers
    "name": "flags", "policy": "lin_ts", "arms": {"a": {"x": True, "y": 2}, "b": None},
    "features": ["x", "y"], "seed": 2,
}  # fmt: skip
OLD: dict[str, Any] = {"name": "old", "arms": ["a", "b"], "policy": "thompson", "seed": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("descriptions")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """A service whose database has the bandits `raw` and `old` from an earlier version."""
    store = store_in(folder)
    store.create_bandit("raw", {key: NEWS[key] for key in NEWS.keys() - {"name"}})
    store.create_bandit("old", {key: OLD[key] for key in OLD.keys() - {"name"}})
    store.create_bandit("flags", {key: FLAGS[key] for key in FLAGS.keys() - {"name"}})
    store.close()
    with served(folder) as serving:
        for bandit in (NEWS, PLAIN):
            status, answer = ask(serving.url, "POST", PATH, bandit)
            assert status == 201, answer
        yield serving.url


def store_in(folder: Path) -> Store:
    return Store(f"sqlite:///{folder}/driftbandits.sqlite")


def shown(url: str, name: str) -> dict[str, Any]:
    status, found = ask(url, "GET", f"{PATH}/{name}")
    assert status == 200
    return found


def status_of(url: str, **bandit: Any) -> int:
    return ask(url, "POST", PATH, bandit)[0]


@pytest.mark.parametrize("name", ["news", "raw"])
def test_a_bandit_can_be_created_again_with_what_it_shows(url: str, name: str) -> None:
    found = shown(url, name)
    assert {key: found[key] for key in ("context", "features")} == {
        key: SHOWN[key] for key in ("context", "features")
    }
    assert {arm["name"]: arm["features"] for arm in found["arms"]} == SHOWN["arms"]
    for written in (NEWS, SHOWN):
        assert status_of(url, **NEWS | written | {"name": name}) == 200


def test_plain_features_may_be_written_either_way(url: str) -> None:
    for arms in ({"a": [0.1, 2], "b": {"y": 4, "x": 3}}, {"a": {"y": 2, "x": 0.1}, "b": [3, 4]}):
        assert status_of(url, **PLAIN | {"arms": arms, "features": ["x", "y"]}) == 200
    found = shown(url, "plain")
    arms = {arm["name"]: arm["features"] for arm in found["arms"]}
    again = {key: found[key] for key in PLAIN | {"features": None, "seed": None}}
    assert status_of(url, **again | {"arms": arms}) == 200


def test_a_bandit_with_flags_among_its_numbers_still_works(url: str) -> None:
    assert [arm["features"] for arm in shown(url, "flags")["arms"]] == [[1.0, 2.0], None]
    assert ask(url, "POST", f"{PATH}/flags/decisions", {"id": "x"})[0] == 200
    assert status_of(url, **FLAGS | {"name": "new"}) == 422
    assert status_of(url, **FLAGS | {"arms": {"a": [1, 2], "b": None}}) == 200


def backwards(mapping: dict[str, Any]) -> dict[str, Any]:
    return dict(reversed(mapping.items()))


@pytest.mark.parametrize("key", ["arms", "context", "features"])
@pytest.mark.parametrize("name", ["news", "raw"])
def test_another_order_is_another_bandit(url: str, name: str, key: str) -> None:
    other = NEWS | {"name": name, key: backwards(NEWS[key])}
    assert status_of(url, **other) == 409


def test_bandits_from_before_there_were_schemas_are_compared_too(url: str) -> None:
    assert status_of(url, **OLD) == 200
    assert status_of(url, **OLD | {"arms": ["b", "a"]}) == 409
    assert status_of(url, **OLD | {"seed": 3}) == 409


@pytest.mark.parametrize("name", ["news", "raw", "plain", "old", "flags"])
def test_a_bandit_that_is_not_loaded_is_shown_in_the_same_way(
    url: str, folder: Path, name: str
) -> None:
    store = store_in(folder)
    row = store.bandit(name)
    store.close()
    assert row is not None
    known = msgspec.json.decode(msgspec.json.encode(known_of(row)))
    assert known == shown(url, name) | UNKNOWN
    assert list(known["context"]) == list(shown(url, name)["context"])


def test_a_bandit_that_breaks_a_newer_rule_is_shown_as_it_is() -> None:
    config = NEWS | {"context": {"n": "nothing"}}
    found = known_of(BanditRow(1, "news", config, 0.0, None, None, alive=False))
    assert found.context == {"n": "nothing"}
    assert [(arm.name, arm.features) for arm in found.arms] == [("a", None), ("b", None)]
