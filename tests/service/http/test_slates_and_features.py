"""Typed contexts, arms with features, and slates over HTTP."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from driftbandits import rebuild_agent
from driftbandits.client import Client
from driftbandits.logs.events import features_of
from driftbandits.service.store.records import Event
from driftbandits.service.store.store import Store
from driftbandits.service_calls import ServiceError
from tests.service.http.test_errors import made_key
from tests.service.serving import Serving, ask, events_of, served, service

__all__ = ["service"]  # a fixture: pytest finds it by name

ARMS = {"a": {"topic": "sport", "age": 1}, "b": {"topic": "arts", "age": 4}}
NEWS: dict[str, Any] = {
    "arms": ARMS, "policy": "lin_ts", "seed": 1,
    "context": {
        "n": "number", "country": "category(buckets=3)", "hour": "cyclic(period=24)",
        "new": "flag",
    },
    "features": {"topic": "category(buckets=3)", "age": "number"},
}  # fmt: skip
SHOWN = [
    {"name": "a", "retired": False, "features": {"topic": "sport", "age": 1.0}},
    {"name": "b", "retired": False, "features": {"topic": "arts", "age": 4.0}},
]
PATH = "/v1/bandits"


def post(url: str, path: str, body: Any, expected: int = 200) -> Any:
    status, answer = ask(url, "POST", f"{PATH}{path}", body)
    assert status == expected, answer
    return answer


@pytest.fixture(scope="module")
def news(service: Serving) -> str:
    """The address of a service with the bandit `careful`, from which all wrong things are asked."""
    post(service.url, "", {"name": "careful", **NEWS}, 201)
    return service.url


def table_of(url: str, name: str, kind: str) -> pl.DataFrame:
    status, content = ask(url, "GET", f"{PATH}/{name}/log?format={kind}")
    assert status == 200
    return (pl.read_csv if kind == "csv" else pl.read_parquet)(io.BytesIO(content))


def test_a_bandit_shows_its_schema_and_its_features(service: Serving) -> None:
    made = post(service.url, "", {"name": "shown", **NEWS}, 201)
    assert (made["context"], made["features"]) == (NEWS["context"], NEWS["features"])
    assert made["arms"] == SHOWN
    assert ask(service.url, "GET", f"{PATH}/shown")[1] == made
    listed = ask(service.url, "GET", PATH)[1]["bandits"]
    assert next(each for each in listed if each["name"] == "shown") == made


def test_creating_again(service: Serving) -> None:
    again = {"name": "again", **NEWS}
    post(service.url, "", again, 201)
    post(service.url, "", again, 200)
    others = [
        {"arms": {**ARMS, "b": {"topic": "film", "age": 4}}}, {"arms": ["a", "b"]},
        {"features": {"topic": "category(buckets=4)", "age": "number"}},
        {"context": {**NEWS["context"], "n": "cyclic(period=7)"}}, {"context": ["n"]},
    ]  # fmt: skip
    for other in others:
        answer = post(service.url, "", {**again, **other}, 409)
        assert answer["error"]["code"] == "existing_name"


def test_plain_numbers_are_named_by_the_first_arm(service: Serving) -> None:
    body = {"name": "plain", "policy": "lin_ts", "arms": {"a": {"x": 1, "y": 0.5}, "b": [2, 3]}}
    made = post(service.url, "", body, 201)
    assert made["features"] == ["x", "y"]
    assert [arm["features"] for arm in made["arms"]] == [[1, 0.5], [2, 3]]
    post(service.url, "/plain/decisions", {"id": "x", "arms": {"a": [0, 0], "b": [1, 1]}})
    post(service.url, "/plain/decisions", {"id": "y"})
    own = table_of(service.url, "plain", "parquet")["own_arms"].to_list()
    assert own == ['{"a": [0.0, 0.0], "b": [1.0, 1.0]}', None]
    for wrong in ({"x": True, "y": 1}, {"x": None, "y": 1}, [True, 1], [None, 1]):
        for path, sent in [
            ("decisions", {"arms": {"a": wrong}}), ("arms", {"name": "c", "features": wrong}),
            ("arms/features", {"name": "a", "features": wrong}),
        ]:  # fmt: skip
            answer = post(service.url, f"/plain/{path}", sent, 422)
            assert "number" in answer["error"]["message"] or "`float`" in answer["error"]["message"]


def test_null_stands_for_what_is_not_known(service: Serving) -> None:
    body = {"name": "vague", **NEWS, "arms": {**ARMS, "c": None}}
    made = post(service.url, "", body, 201)
    assert [arm["features"] for arm in made["arms"]] == [*(arm["features"] for arm in SHOWN), None]
    again = {arm["name"]: arm["features"] for arm in made["arms"]}
    post(service.url, "", {**body, "arms": again}, 200)
    post(service.url, "/vague/decisions", {"id": "x", "arms": {"a": None, "b": {"age": None}}})
    own = table_of(service.url, "vague", "parquet")["own_arms"].to_list()
    assert own == ['{"b": {}}']
    body = {"name": "a", "features": {"topic": None, "age": 2}}
    found = post(service.url, "/vague/arms/features", body)["arms"]
    assert found[0]["features"] == {"age": 2.0}
    post(service.url, "/vague/arms/features", {"name": "a", "features": None}, 422)


def test_arms_have_features_that_can_be_set(service: Serving) -> None:
    post(service.url, "", {"name": "arms", **NEWS}, 201)
    post(service.url, "/arms/arms", {"name": "c", "features": {"age": 2}}, 201)
    post(service.url, "/arms/arms", {"name": "d"}, 201)
    assert post(service.url, "/arms/arms", {"name": "d", "features": {}}, 409)
    body = {"name": "a", "features": {"topic": "film"}}
    found = post(service.url, "/arms/arms/features", body)["arms"]
    assert [arm["features"] for arm in found] == [
        {"topic": "film"}, {"topic": "arts", "age": 4.0}, {"age": 2.0}, None,
    ]  # fmt: skip
    post(service.url, "/nobody/arms/features", body, 404)


@pytest.mark.parametrize("kind", ["typed", "plain"])
def test_the_same_features_again_write_nothing(tmp_path: Path, kind: str) -> None:
    arms: Any = ARMS if kind == "typed" else {"a": {"x": 0.1}, "b": {"x": 2}}
    body: Any = {"name": "same", **NEWS, "arms": arms}
    if kind == "plain":
        del body["features"]
    other = {"topic": "film"} if kind == "typed" else [0.3]
    with served(tmp_path) as serving:
        post(serving.url, "", body, 201)
        same = {"name": "a", "features": arms["a"]}
        shown = post(serving.url, "/same/arms/features", same)
        assert shown == ask(serving.url, "GET", f"{PATH}/same")[1]
        post(serving.url, "/same/arms/features", {"name": "a", "features": other})
        serving.stop()
        serving.start()
        for _ in range(2):
            post(serving.url, "/same/arms/features", {"name": "a", "features": other})
        post(serving.url, "/same/arms/features", {"name": "a", "features": {"size": 1}}, 422)
        post(serving.url, "/same/arms/features", same)
    kinds = [(each.kind, features_of(each)) for each in logged(tmp_path, "same")]
    shown_other = {"topic": "film"} if kind == "typed" else [np.float32(0.3).item()]
    first = shown["arms"][0]["features"]
    assert kinds == [("features_set", shown_other), ("features_set", first)]
    assert rebuild_agent(f"sqlite:///{tmp_path}/driftbandits.sqlite", "same").events == 2


def logged(folder: Path, name: str) -> list[Event]:
    store = Store(f"sqlite:///{folder}/driftbandits.sqlite", read_only=True)
    row = store.bandit(name)
    assert row
    events = store.events(row.id, 0)
    store.close()
    return events


def test_a_slate(service: Serving) -> None:
    post(service.url, "", {"name": "page", "arms": ["a", "b", "c"], "policy": "thompson"}, 201)
    path, body = "/page/decisions", {"id": "s", "k": 2}
    made = post(service.url, path, body)["decisions"]
    assert [(each["id"], each["slate"], each["place"]) for each in made] == [
        ("s.1", "s", 1), ("s.2", "s", 2),
    ]  # fmt: skip
    one, two = made
    assert one["arm"] != two["arm"]
    assert two["probabilities"][one["arm"]] == 0
    assert two["probability"] == two["probabilities"][two["arm"]]
    assert post(service.url, path, body)["decisions"] == made
    longer = post(service.url, path, {"id": "s", "k": 3})["decisions"]
    assert longer[:2] == made
    assert {each["arm"] for each in longer} == {"a", "b", "c"}
    rewards = {"rewards": [{"id": "s.1", "reward": 0}, {"id": "s.3", "reward": 1}]}
    statuses = post(service.url, "/page/rewards/batch", rewards)["rewards"]
    assert [each["status"] for each in statuses] == ["learned", "learned"]
    hint = "there is no decision with the id 's'; 's' is a slate, so use the ids of its places: "
    one_reward = {"id": "s", "reward": 1}
    for where in ("rewards", "corrections"):
        answer = post(service.url, f"/page/{where}", one_reward, 404)
        assert answer["error"]["message"] == f"{hint}'s.1', ..."
    several = {"rewards": [one_reward, {"id": "nobody", "reward": 1}]}
    refused = post(service.url, "/page/rewards/batch", several)["rewards"]
    assert [("is a slate" in each["error"]["message"]) for each in refused] == [True, False]
    post(service.url, "/page/rewards", {"id": "s.1", "reward": 1}, 409)
    assert post(service.url, path, {"id": "s", "k": 3})["decisions"] == longer
    assert events_of(service.url, "page")[:2] == (3, 2)


def test_slates_in_a_batch_come_one_after_the_other(service: Serving) -> None:
    post(service.url, "", {"name": "pages", "arms": ["a", "b", "c"], "policy": "thompson"}, 201)
    asked = [{"id": "x"}, {"id": "s", "k": 2}, {"k": 1}, {"id": "s", "k": 3}]
    made = post(service.url, "/pages/decisions/batch", {"decisions": asked})["decisions"]
    ids = ["x", "s.1", "s.2", made[3]["id"], "s.1", "s.2", "s.3"]
    assert [each["id"] for each in made] == ids
    assert made[4:6] == made[1:3]
    assert "slate" not in made[0]
    assert made[3]["id"] == made[3]["slate"] + ".1"


def test_the_log_has_values_slates_and_places(service: Serving) -> None:
    post(service.url, "", {"name": "logged", **NEWS}, 201)
    own = {"a": {"age": 3}, "b": {"topic": "=1+1"}}
    contexts = [{"n": 0.1, "country": "=2+2", "hour": 5, "new": True}, {}]
    post(service.url, "/logged/decisions", {"id": "-s", "k": 2, "context": contexts[0]})
    post(service.url, "/logged/decisions", {"id": "x", "context": contexts[1], "arms": own})
    post(service.url, "/logged/rewards", {"id": "-s.2", "reward": 0.5})
    for kind in ("csv", "parquet"):
        found, quote = table_of(service.url, "logged", kind), "'" if kind == "csv" else ""
        assert found["id"].to_list() == [f"{quote}-s.1", f"{quote}-s.2", "x"]
        assert found["slate"].to_list() == [f"{quote}-s", f"{quote}-s", None]
        assert found["place"].to_list() == [1, 2, None]
        assert found["context.n"].to_list() == [0.1, 0.1, None]
        assert found["context.country"].to_list() == [f"{quote}=2+2", f"{quote}=2+2", None]
        assert found["context.hour"].to_list() == [5, 5, None]
        assert found["context.new"].to_list() == [True, True, None]
        assert [each and json.loads(each) for each in found["own_arms"]] == [None, None, own]
        assert found["reward"].to_list() == [None, 0.5, None]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_empty_log_has_its_columns(news: str, kind: str) -> None:
    columns = table_of(news, "careful", kind).columns
    typed = [f"context.{name}" for name in NEWS["context"]]
    assert columns[:7] == ["id", "time", *typed, "own_arms"]
    assert columns[-2:] == ["slate", "place"]


WRONG_DECISIONS = {
    "unknown name": (b'{"context": {"size": 1}}', 422),
    "NaN": (b'{"context": {"n": NaN}}', 400),
    "too large": (b'{"context": {"n": 1e999}}', 422),
    "text for a number": (b'{"context": {"n": "1"}}', 422),
    "flag for a number": (b'{"context": {"n": true}}', 422),
    "number for a category": (b'{"context": {"country": 5}}', 422),
    "empty category": (b'{"context": {"country": ""}}', 422),
    "category with a zero": (b'{"context": {"country": "a\\u0000"}}', 422),
    "long category": (b'{"context": {"country": "' + b"a" * 201 + b'"}}', 422),
    "number for a flag": (b'{"context": {"new": 1}}', 422),
    "a list of numbers": (b'{"context": [1, 2, 3, 4]}', 422),
    "a list for a value": (b'{"context": {"n": [1]}}', 422),
    "unknown feature": (b'{"arms": {"a": {"size": 1}}}', 422),
    "unknown own arm": (b'{"arms": {"z": {"age": 1}}}', 422),
    "no own arms": (b'{"arms": {}}', 422),
    "own arms by name alone": (b'{"arms": ["a"]}', 422),
    "own arms and available": (b'{"arms": {"a": {}}, "available": ["a"]}', 422),
    "k of 0": (b'{"k": 0}', 422),
    "k too large": (b'{"k": 3}', 422),
    "k far too large": (b'{"k": 1001}', 422),
    "k too large for its own arms": (b'{"k": 2, "arms": {"a": {}}}', 422),
    "k of text": (b'{"k": "2"}', 422),
    "k of a flag": (b'{"k": true}', 422),
    "k with a fraction": (b'{"k": 1.5}', 422),
    "long id of a slate": (b'{"k": 2, "id": "' + b"a" * 199 + b'"}', 422),
}


@pytest.mark.parametrize("case", WRONG_DECISIONS)
def test_wrong_decisions_write_nothing(news: str, case: str) -> None:
    body, expected = WRONG_DECISIONS[case]
    before = events_of(news, "careful")
    status, answer = ask(news, "POST", f"{PATH}/careful/decisions", body)
    assert (status, set(answer["error"])) == (expected, {"code", "message", "remedy"})
    batch = b'{"decisions": [{"context": {"country": "new"}}, ' + body + b"]}"
    assert ask(news, "POST", f"{PATH}/careful/decisions/batch", batch)[0] == expected
    assert events_of(news, "careful") == before
    assert table_of(news, "careful", "csv").height == 0


def test_a_batch_has_at_most_1000_places(news: str) -> None:
    body = {"decisions": [{"k": 2}] * 501}
    answer = post(news, "/careful/decisions/batch", body, 422)
    assert "the sum of all k must be at most 1000" in answer["error"]["message"]


@pytest.mark.parametrize("path", ["arms", "arms/features"])
@pytest.mark.parametrize(
    "features",
    [b'{"size": 1}', b'{"age": "old"}', b'{"topic": 5}', b"[1, 2]", b'{"age": 1e999}', b'"sport"'],
)
def test_wrong_features_write_nothing(news: str, path: str, features: bytes) -> None:
    name = b"new" if path == "arms" else b"a"
    body = b'{"name": "' + name + b'", "features": ' + features + b"}"
    assert ask(news, "POST", f"{PATH}/careful/{path}", body)[0] == 422
    assert ask(news, "GET", f"{PATH}/careful")[1]["arms"] == SHOWN


def test_features_need_a_bandit_with_features_and_an_arm(news: str) -> None:
    post(news, "", {"name": "bare", "arms": ["a"], "policy": "thompson"}, 201)
    post(news, "/bare/arms", {"name": "b", "features": {"x": 1}}, 422)
    post(news, "/bare/arms/features", {"name": "a", "features": {}}, 422)
    post(news, "/careful/arms/features", {"name": "z", "features": {}}, 422)
    post(news, "/careful/arms/features", {"name": "a"}, 422)
    assert ask(news, "GET", f"{PATH}/bare")[1]["arms"] == [
        {"name": "a", "retired": False, "features": None}
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": {"n": "numbr"}}, {"context": {"n": "category(buckets=1)"}},
        {"context": {"n": "number(low=1)"}}, {"context": {"n": 5}}, {"context": {"": "number"}},
        {"features": ["age"]}, {"features": []}, {"arms": {}}, {"arms": {"a": {"size": 1}}},
        {"arms": {"a": "sport"}}, {"context_ranges": {"n": [0, 1]}},
        {"context": {f"c{place}": "category(buckets=999)" for place in range(2)}},
        {"context": {"n": "category(buckets=" + "9" * 5000 + ")"}},
        {"context": {"n": "category(buckets=0x" + "f" * 5000 + ")"}},
        {"context": {"n": "number(category(3))"}}, {"context": {"n": "number(low='flag', high=1)"}},
        {"context": {"n": "category(values=[number()])"}}, {"context": {"n": {"number": {}}}},
        {"features": {"age": "cyclic(" + "-" * 50_000 + "1)"}}, {"features": {"age": "(" * 90_000}},
        {"features": {"topic": "cyclic(category(3))", "age": "number"}},
    ],
)  # fmt: skip
def test_wrong_bandits_are_not_created(news: str, wrong: dict[str, Any]) -> None:
    answer = post(news, "", {"name": "wrong", **NEWS, **wrong}, 422)
    assert answer["error"]["message"]
    assert ask(news, "GET", f"{PATH}/wrong")[0] == 404


def test_only_an_admin_may_set_features(tmp_path: Path) -> None:
    with served(tmp_path, keys=True) as serving:
        keys = {role: made_key(tmp_path, role) for role in ("admin", "decide", "read")}
        bandit = {"name": "news", **NEWS}
        assert ask(serving.url, "POST", PATH, bandit, key=keys["admin"])[0] == 201
        body = {"name": "a", "features": {}}
        for role, expected in (("decide", 403), ("read", 403), ("admin", 200)):
            path = f"{PATH}/news/arms/features"
            assert ask(serving.url, "POST", path, body, key=keys[role])[0] == expected


def test_the_client_knows_slates_and_features(service: Serving) -> None:
    with Client(service.url) as client:
        client.create("friend", ARMS, context=NEWS["context"], features=NEWS["features"],
                      policy="lin_ts")  # fmt: skip
        client.add_arm("friend", "c", {"age": 3})
        found = client.set_features("friend", "a", {"topic": "film"})
        assert [arm.features for arm in found.arms] == [
            {"topic": "film"}, {"topic": "arts", "age": 4.0}, {"age": 3.0},
        ]  # fmt: skip
        assert (found.context, found.features) == (NEWS["context"], NEWS["features"])
        slate = client.decide("friend", {"country": "AT"}, k=2, id="s")
        assert [(each.id, each.slate, each.place) for each in slate] == [
            ("s.1", "s", 1), ("s.2", "s", 2),
        ]  # fmt: skip
        own = {"b": {"topic": "film"}, "c": None}
        single, many = client.decide_many("friend", [{"arms": own}, {"id": "s", "k": 3}])
        assert single.arm in own
        assert many[:2] == slate
        assert client.reward("friend", "s.3", 1.0).status == "learned"
        with pytest.raises(ServiceError, match="k must be at most 3"):
            client.decide("friend", k=4)


STORY: list[tuple[str, Any, int]] = [
    ("arms", {"name": "c", "features": {"size": 1}}, 422),
    ("decisions", {"id": "1", "context": {"n": 5, "country": "AT"}}, 200),
    ("decisions", {"id": "2", "context": {"n": -70, "hour": 3}, "k": 2}, 200),
    ("rewards", {"id": "2.1", "reward": 1}, 200),
    ("arms", {"name": "c", "features": {"topic": "sport", "age": 60}}, 201),
    ("decisions", {"id": "3", "context": {"new": True}, "arms": {"a": {"age": 8}, "c": {}}}, 200),
    ("arms/features", {"name": "a", "features": {"topic": "film", "age": 9}}, 200),
    ("decisions", {"id": "3", "context": {"n": 3}, "k": 3}, 200),
    ("rewards", {"id": "3.2", "reward": 0.5}, 200),
    ("rewards", {"id": "1", "reward": 0}, 200),
    ("corrections", {"id": "1", "reward": 1}, 200),
    ("arms/retire", {"name": "b"}, 200),
    ("decisions", {"id": "4", "context": {"n": 30, "country": "DE"}, "k": 2}, 200),
    ("rewards", {"id": "4.1", "reward": 0.25}, 200),
]


def after(story: Any, url: str, path: str) -> Any:
    """Tells a part of the story."""
    for where, body, expected in story:
        post(url, f"{path}/{where}", body, expected)


@pytest.mark.parametrize("policy", ["lin_ts", "tracker"])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_service_that_ends_goes_on_bit_for_bit(tmp_path: Path, policy: str, end: str) -> None:
    database = f"sqlite:///{tmp_path}/driftbandits.sqlite"
    following = {"id": "next", "context": {"n": 1, "country": "PL"}, "k": 2}
    with served(tmp_path) as serving:
        post(serving.url, "", {"name": "news", **NEWS, "policy": policy, "window": None}, 201)
        for part in (STORY[:6], STORY[6:]):
            after(part, serving.url, "/news")
            serving.stop() if end == "stop" else serving.kill()
            serving.start()
        rebuilt = rebuild_agent(database, "news")
        assert rebuilt.mismatches == 0
        made = post(serving.url, "/news/decisions", following)["decisions"]
    expected = rebuilt.agent.decide(**following)  # type: ignore[call-overload]
    assert [(each["arm"], each["probabilities"]) for each in made] == [
        (each.arm, each.probabilities) for each in expected
    ]
    assert rebuild_agent(database, "news").mismatches == 0


def test_a_request_brings_so_many_arms_at_most(news: str) -> None:
    decision = {"arms": {f"a{i}": {} for i in range(1000)}, "context": {}}
    answer = post(news, "/careful/decisions/batch", {"decisions": [decision] * 11}, 422)
    assert answer["error"]["message"] == (
        "arms must be at most 10000 in all decisions of a request, got 11000"
    )
    assert ask(news, "GET", f"{PATH}/careful")[1]["decisions"] == 0
