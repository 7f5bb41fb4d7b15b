"""The client, against a service in memory that follows the contract or breaks on purpose."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.client import Client
from driftbandits.client_batches import batches
from driftbandits.client_messages import Arm, Decision, Outcome
from driftbandits.service_calls import ServiceError
from tests.fake_service import FakeService, refused


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def client(service: FakeService) -> Iterator[Client]:
    with Client("http://test/", key="secret", transport=httpx.MockTransport(service)) as client:
        yield client


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr("driftbandits.service_calls.time.sleep", waits.append)
    return waits


def test_bandits_are_created_listed_and_deleted(client: Client, service: FakeService) -> None:
    made = client.create("shop", ("red", "green"), context=["age"], window=60, seed=1)
    assert made.arms == (Arm("red", False), Arm("green", True))
    assert (made.context, made.reward_range, made.open) == (("age",), (0, 1), 1)
    assert client.bandits() == [made]
    assert client.bandit("shop") == made
    client.delete("shop")
    body = {"name": "shop", "arms": ["red", "green"], "context": ["age"], "policy": "tracker"}
    assert service.asked == [
        ("POST", "/v1/bandits", body | {"window": 60, "seed": 1}),
        ("GET", "/v1/bandits", None),
        ("GET", "/v1/bandits/shop", None),
        ("DELETE", "/v1/bandits/shop", None),
    ]
    assert {headers["Authorization"] for headers in service.headers} == {"Bearer secret"}


def test_only_what_is_given_is_changed(client: Client, service: FakeService) -> None:
    client.change_settings("shop", out_of_range="clip")
    client.change_settings("shop", context_ranges={"age": (0, 120)})
    assert service.asked == [
        ("PATCH", "/v1/bandits/shop", {"out_of_range": "clip"}),
        ("PATCH", "/v1/bandits/shop", {"context_ranges": {"age": [0, 120]}}),
    ]


ESCAPED = {"a b?#%": "a%20b%3F%23%25", "snö☃": "sn%C3%B6%E2%98%83", "..": "%2E%2E"}


@pytest.mark.parametrize(("name", "path"), ESCAPED.items())
def test_names_are_escaped_in_paths(
    client: Client, service: FakeService, name: str, path: str
) -> None:
    client.retire_arm(name, "a/b")
    assert service.asked == [("POST", f"/v1/bandits/{path}/arms/retire", {"name": "a/b"})]


def test_arms_come_and_go(client: Client, service: FakeService) -> None:
    for change in (client.add_arm, client.retire_arm, client.restore_arm):
        assert change("shop", "blue").name == "shop"
    ends = [path.removeprefix("/v1/bandits/shop/") for _, path, _ in service.asked]
    assert ends == ["arms", "arms/retire", "arms/restore"]
    assert [body for _, _, body in service.asked] == [{"name": "blue"}] * 3


def test_a_decision_has_an_id_and_probabilities(client: Client, service: FakeService) -> None:
    decision = client.decide("shop", context=np.float32([1, 2.5]), available=("red",), id="mine")
    assert decision == Decision("mine", "red", 0.25, {"red": 0.25, "green": 0.75})
    client.decide("shop", context={"age": np.int64(3), "new": np.True_, "old": False, "x": None})
    client.decide("shop")
    first, second, third = (body for _, _, body in service.asked)
    assert first == {"id": "mine", "context": [1.0, 2.5], "available": ["red"]}
    assert second["context"] == {"age": 3.0, "new": True, "old": False, "x": None}
    assert set(third) == {"id"}
    assert len({second["id"], third["id"]}) == 2


def test_many_decisions_are_one_request(client: Client, service: FakeService) -> None:
    decisions = client.decide_many("shop", [{"context": [1.0]}, {"id": "mine"}, {}])
    ((_, path, body),) = service.asked
    assert path == "/v1/bandits/shop/decisions/batch"
    assert [one.id for one in decisions] == [one["id"] for one in body["decisions"]]
    assert len({"mine", *(one.id for one in decisions)}) == 3


def test_a_batch_has_at_most_1000_places() -> None:
    rows: list[dict[str, Any]] = [{"k": 600}, {"id": "x"}, {"k": 399}, {"k": 1}, {"k": 1000}]
    assert list(batches(rows)) == [rows[:3], rows[3:4], rows[4:]]


def test_a_batch_brings_at_most_10_000_arms(client: Client, service: FakeService) -> None:
    own = {f"arm {place}": {"size": 0.5} for place in range(1000)}
    rows: list[dict[str, Any]] = [{"id": str(number), "arms": own} for number in range(25)]
    made = client.decide_many("shop", [*rows, {"id": "last"}])
    assert [one.id for one in made] == [*(row["id"] for row in rows), "last"]
    assert [len(body["decisions"]) for _, _, body in service.asked] == [10, 10, 6]


@pytest.mark.parametrize("text", ["x", "é", "🦜"])
def test_a_batch_has_at_most_4_million_bytes(
    client: Client, service: FakeService, text: str
) -> None:
    context = {f"name {place}": text * 200 for place in range(100)}
    rows: list[dict[str, Any]] = [{"id": str(number), "context": context} for number in range(300)]
    assert [one.id for one in client.decide_many("shop", rows)] == [row["id"] for row in rows]
    sizes = [int(headers["Content-Length"]) for headers in service.headers]
    assert len(sizes) > 1
    assert max(sizes) <= 4_000_000


def test_a_request_that_is_too_large_is_sent_alone() -> None:
    rows: list[dict[str, Any]] = [{"id": "a"}, {"context": ["x" * 5_000_000]}, {"id": "b"}]
    assert list(batches(rows)) == [rows[:1], rows[1:2], rows[2:]]


def test_rewards_tell_what_became_of_them(client: Client) -> None:
    assert client.reward("shop", "a", True) == Outcome("a", 1.0, "learned")
    good, bad = client.reward_many("shop", [("a", 0.5), ("unknown", 1)])
    assert good == Outcome("a", 0.5, "learned")
    assert (bad.id, bad.reward, bad.status) == ("unknown", None, "refused")
    assert str(bad.error) == "id must be known (unknown_decision); choose another"


def test_very_many_rewards_are_several_requests(client: Client, service: FakeService) -> None:
    outcomes = client.reward_many("shop", [(str(index), index) for index in range(2500)])
    assert [outcome.id for outcome in outcomes] == [str(index) for index in range(2500)]
    assert [len(body["rewards"]) for _, _, body in service.asked] == [1000, 1000, 500]


def test_the_log_is_a_file_and_the_series_a_table(client: Client, service: FakeService) -> None:
    service.answers = [httpx.Response(200, content=b"PAR1"), httpx.Response(200, json={"open": 3})]
    assert b"".join(client.log("shop")) == b"PAR1"
    assert client.series("shop", points=5) == {"open": 3}
    ends = [path.removeprefix("/v1/bandits/shop/") for _, path, _ in service.asked]
    assert ends == ["log?format=parquet", "series?points=5"]


def test_a_refusal_is_one_good_line(client: Client, service: FakeService) -> None:
    service.answers = [refused(409, "existing_name")]
    with pytest.raises(ServiceError) as caught:
        client.create("shop", ["red", "green"])
    assert (caught.value.status, caught.value.code) == (409, "existing_name")
    assert str(caught.value) == "name must be new, got 'shop' (409 existing_name); choose another"
    assert len(service.asked) == 1


@pytest.mark.parametrize("status", [200, 404, 502])
def test_an_answer_of_another_server_is_told(
    client: Client, service: FakeService, status: int
) -> None:
    service.answers = [httpx.Response(status, text="<html>hello</html>")]
    with pytest.raises(ServiceError, match=rf"/bandits/shop answered {status}") as caught:
        client.bandit("shop")
    assert caught.value.code == f"http_{status}"


def test_a_timeout_of_the_service_is_repeated_only_where_that_is_safe(
    client: Client, service: FakeService
) -> None:
    """As it may have happened."""
    service.answers = [refused(504, "no_answer_in_time")] * 2
    client.decide("shop")
    assert len(service.asked) == 3
    service.answers = [refused(504, "no_answer_in_time")]
    with pytest.raises(ServiceError, match="504 no_answer_in_time"):
        client.add_arm("shop", "blue")
    assert len(service.asked) == 4


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_waited_for(
    client: Client, service: FakeService, waits: list[float], status: int
) -> None:
    service.answers = [refused(status, **{"Retry-After": "7"}), refused(status)]
    client.add_arm("shop", "blue")
    assert len(service.asked) == 3
    assert waits[0] == 7.0
    assert 0 < waits[1] < 1, "its own guess where the service says nothing"


def test_it_gives_up_in_the_end(client: Client, service: FakeService, waits: list[float]) -> None:
    service.answers = [refused(503, "shutting_down", **{"Retry-After": "1"})] * 9
    with pytest.raises(ServiceError, match="503 shutting_down"):
        client.decide("shop")
    assert len(service.asked) == 6
    assert waits == [1.0] * 5


def test_nobody_waits_for_an_hour(client: Client, service: FakeService, waits: list[float]) -> None:
    service.answers = [refused(429, **{"Retry-After": "3600"})]
    with pytest.raises(ServiceError, match="429"):
        client.decide("shop")
    assert not waits


Ask = Callable[[Client], Any]
SAFE: dict[str, Ask] = {
    "decide": lambda client: client.decide("shop"),
    "decide_many": lambda client: client.decide_many("shop", [{}, {}]),
    "reward": lambda client: client.reward("shop", "a", 1.0),
    "reward_many": lambda client: client.reward_many("shop", [("a", 1.0)]),
    "retire_arm": lambda client: client.retire_arm("shop", "red"),
    "restore_arm": lambda client: client.restore_arm("shop", "red"),
    "bandits": lambda client: client.bandits(),
    "create": lambda client: client.create("shop", ["red"]),
    "log": lambda client: list(client.log("shop")),
}
UNSAFE: dict[str, Ask] = {
    "add_arm": lambda client: client.add_arm("shop", "red"),
    "delete": lambda client: client.delete("shop"),
}
BROKEN = [httpx.ReadError("reset"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut")]


@pytest.mark.parametrize("name", SAFE)
def test_broken_requests_are_repeated(client: Client, service: FakeService, name: str) -> None:
    service.answers = list(BROKEN)
    SAFE[name](client)
    assert len(service.asked) == 4
    assert all(asked == service.asked[0] for asked in service.asked), "with the same ids"


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("error", BROKEN)
def test_others_are_not(client: Client, service: FakeService, name: str, error: Exception) -> None:
    """What may have happened is not asked for again."""
    service.answers = [error]
    with pytest.raises(ServiceError, match="http://test did not answer") as caught:
        UNSAFE[name](client)
    assert (caught.value.status, caught.value.code) == (0, "unreachable")
    assert len(service.asked) == 1


@pytest.mark.parametrize("name", UNSAFE | SAFE)
def test_what_was_never_sent_is_sent_again(client: Client, service: FakeService, name: str) -> None:
    service.answers = [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow")]
    (UNSAFE | SAFE)[name](client)
    assert len(service.asked) == 3


def test_no_key_and_no_retries_can_be_asked_for(service: FakeService) -> None:
    service.answers = [httpx.ConnectError("refused")]
    client = Client("http://test", retries=0, transport=httpx.MockTransport(service))
    with client, pytest.raises(ServiceError, match="did not answer: refused"):
        client.bandits()
    assert len(service.asked) == 1
    assert "Authorization" not in service.headers[0]


def test_several_threads_share_a_client(client: Client, service: FakeService) -> None:
    ids = [str(index) for index in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert [one.id for one in pool.map(lambda id: client.decide("shop", id=id), ids)] == ids
    assert len(service.asked) == 200


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda client: client.create("shop", "red"), "arms must be a list of names, got 'red'"),
        (lambda client: client.decide("shop", context="12"), "context must be a list, got '12'"),
        (lambda client: client.decide("shop", available="red"), "available must be a list"),
        (lambda client: client.decide("shop", context=[1.0, np.nan]), "context must be a finite"),
        (lambda client: client.decide("shop", context={"age": ()}), "age must be a finite"),
        (
            lambda client: client.decide("shop", context=[1, True]),
            "context must be a finite number",
        ),
        (lambda client: client.decide("shop", context=5), "context must be numbers in order, or"),
        (
            lambda client: client.decide("shop", arms={"a": "x"}),
            "the features of a must be numbers",
        ),
        (lambda client: client.decide_many("shop", [{"contxt": [1]}]), "did you mean 'context'"),
        (lambda client: client.decide("shop", k="2"), "k must be a whole number of at least 1"),
        (lambda client: client.decide("shop", k=0), "k must be a whole number of at least 1"),
        (lambda client: client.reward("shop", "a", float("inf")), "reward must be a finite number"),
        (lambda client: client.reward("shop", "a", "1"), "reward must be a finite number, got '1'"),
        (lambda client: client.delete(""), "bandit must be a name, got ''"),
        (lambda client: client.log("shop", "xml"), "format must be one of parquet, csv, got 'xml'"),
    ],
)
def test_mistakes_are_told(client: Client, service: FakeService, ask: Ask, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(client)
    assert service.asked == []


@pytest.mark.parametrize("settings", [{"url": "localhost:8000"}, {"timeout": 0}, {"retries": -1}])
def test_a_foolish_client_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(settings))} must be"):
        Client(**settings)


NEEDED = [
    "", ".atomic_file", ".check", ".client", ".client_batches", ".client_messages", ".extras",
    ".service_calls",
]  # fmt: skip


def test_it_imports_httpx_and_neither_jax_nor_numpy() -> None:
    code = "import sys; from driftbandits import Client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    ours = {name for name in modules if name.startswith("driftbandits")}
    assert ours == {f"driftbandits{name}" for name in NEEDED}
    assert not modules & {"jax", "jaxlib", "numpy", "scipy", "sqlalchemy", "msgspec", "polars"}
