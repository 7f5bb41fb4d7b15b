"""Ranges and corrections over HTTP."""

from typing import Any

import pytest

from driftbandits.client import Client
from driftbandits.service_calls import ServiceError
from tests.service.serving import Serving, ask, create, service

__all__ = ["service"]  # a fixture: pytest finds it by name


def decide(url: str, bandit: str, **body: Any) -> tuple[int, Any]:
    return ask(url, "POST", f"/v1/bandits/{bandit}/decisions", body)


def reward(url: str, bandit: str, **body: Any) -> tuple[int, Any]:
    return ask(url, "POST", f"/v1/bandits/{bandit}/rewards", body)


def correct(url: str, bandit: str, **body: Any) -> tuple[int, Any]:
    return ask(url, "POST", f"/v1/bandits/{bandit}/corrections", body)


@pytest.mark.parametrize("poison", [1e3, -1e6, 1e12])
def test_a_poison_is_refused_with_422_and_the_decision_stays_open(
    service: Serving, poison: float
) -> None:
    create(service.url, "safe")
    decide(service.url, "safe", id=f"visit {poison}")
    status, answer = reward(service.url, "safe", id=f"visit {poison}", reward=poison)
    assert status == 422
    assert answer["error"]["message"] == (
        f"reward must be from 0 to 1 (reward_range), got {poison!r}"
    )
    assert reward(service.url, "safe", id=f"visit {poison}", reward=1)[0] == 200


def test_one_bad_reward_of_a_batch_does_not_stop_the_others(service: Serving) -> None:
    create(service.url, "batch")
    path = "/v1/bandits/batch"
    ids = [{"id": f"b{i}"} for i in range(3)]
    ask(service.url, "POST", f"{path}/decisions/batch", {"decisions": ids})
    rewards = [{"id": "b0", "reward": 1}, {"id": "b1", "reward": 9}, {"id": "b2", "reward": 0}]
    answers = ask(service.url, "POST", f"{path}/rewards/batch", {"rewards": rewards})[1]["rewards"]
    assert [each.get("status") for each in answers] == ["learned", None, "learned"]
    assert answers[1]["error"]["code"] == "bad_value"


def test_ranges_of_a_bandit_are_kept_and_shown(service: Serving) -> None:
    settings = {"context": ["age", "hour"], "context_ranges": {"age": [0, 120]}}
    made = create(service.url, "ages", policy="lin_ucb", **settings, out_of_range="clip")
    assert made["context_ranges"] == {"age": [0, 120]}
    assert made["out_of_range"] == "clip"
    assert decide(service.url, "ages", context=[1e6, 1], id="old")[0] == 200
    assert reward(service.url, "ages", id="old", reward=5)[0] == 200
    log = ask(service.url, "GET", "/v1/bandits/ages/log")[1].decode()
    assert "120.0,1.0" in log
    refusing = create(service.url, "strict", policy="lin_ucb", **settings)
    assert refusing["out_of_range"] == "refuse"
    status, answer = decide(service.url, "strict", context={"age": 121, "hour": 0})
    assert (status, answer["error"]["code"]) == (422, "bad_value")
    assert "context number age must be from 0 to 120" in answer["error"]["message"]
    body = {"name": "no", "arms": ["a"], "context_ranges": {"age": [0, 1]}}
    assert ask(service.url, "POST", "/v1/bandits", body)[0] == 422


def test_a_reward_is_corrected_and_taken_back(service: Serving) -> None:
    create(service.url, "sorry", policy="ucb", seed=1)
    for visit in range(6):
        decide(service.url, "sorry", id=f"v{visit}")
        reward(service.url, "sorry", id=f"v{visit}", reward=1)
    wrong = decide(service.url, "sorry", id="next")[1]["probabilities"]
    status, answer = correct(service.url, "sorry", id="v1", reward=0)
    assert (status, answer) == (200, {"id": "v1", "before": 1.0, "reward": 0.0})
    assert correct(service.url, "sorry", id="v0", reward=None)[1]["before"] == 1.0
    assert decide(service.url, "sorry", id="next")[1]["probabilities"] == wrong  # it was answered
    status, answer = reward(service.url, "sorry", id="v1", reward=1)
    assert (status, answer["error"]["code"]) == (409, "contradictory_reward")
    assert reward(service.url, "sorry", id="v1", reward=0)[1]["status"] == "duplicate"
    assert correct(service.url, "sorry", id="next", reward=0)[0] == 409
    assert correct(service.url, "sorry", id="nobody", reward=0)[0] == 404
    assert correct(service.url, "sorry", id="v1")[0] == 422  # null must be said
    lines = ask(service.url, "GET", "/v1/bandits/sorry/log")[1].decode().splitlines()
    columns = lines[0].split(",")
    rows = {
        row["id"]: row
        for row in (dict(zip(columns, line.split(","), strict=True)) for line in lines[1:])
    }
    assert (rows["v1"]["reward"], rows["v1"]["corrected_reward"]) == ("1.0", "0.0")
    assert (rows["v0"]["reward"], rows["v0"]["corrected_reward"]) == ("1.0", "")
    assert rows["v0"]["corrected_at"]
    assert not rows["v2"]["corrected_at"]


def test_the_client_corrects(service: Serving) -> None:
    create(service.url, "client")
    with Client(service.url) as client:
        made = client.decide("client")
        client.reward("client", made.id, 1.0)
        assert client.correct("client", made.id, 0.0) == (made.id, 1.0, 0.0)
        assert client.correct("client", made.id, None).reward is None
        with pytest.raises(ServiceError) as refusal:
            client.correct("client", "nobody", 1.0)
        assert refusal.value.code == "unknown_decision"


def change(url: str, bandit: str, body: Any, key: str | None = None) -> tuple[int, Any]:
    return ask(url, "PATCH", f"/v1/bandits/{bandit}", body, key)


def test_what_becomes_of_other_numbers_can_be_changed(service: Serving) -> None:
    create(service.url, "changing", policy="uniform", out_of_range="accept", context=["age"])
    decide(service.url, "changing", id="x", context=[500])
    status, changed = change(service.url, "changing", {"out_of_range": "refuse"})
    assert (status, changed["out_of_range"]) == (200, "refuse")
    assert reward(service.url, "changing", id="x", reward=7)[0] == 422
    assert decide(service.url, "changing", context=[500])[0] == 422
    with Client(service.url) as client:
        client.change_settings("changing", context_ranges={"age": (0, 600)})
        assert decide(service.url, "changing", context=[500])[0] == 200
        found = client.change_settings("changing", out_of_range="clip")
        assert (found.out_of_range, found.context_ranges) == ("clip", {"age": (0, 600)})
        assert client.bandit("changing") == found
    assert reward(service.url, "changing", id="x", reward=7)[0] == 200


@pytest.mark.parametrize(
    "body", [{}, {"out_of_range": "ignore"}, {"seed": 2}, {"context_ranges": {"size": [0, 1]}}]
)
def test_changes_that_are_refused(service: Serving, body: dict[str, Any]) -> None:
    create(service.url, "kept", policy="uniform", context=["age"])
    status, answer = change(service.url, "kept", body)
    assert (status, answer["error"]["code"]) == (422, "bad_value")
    assert ask(service.url, "GET", "/v1/bandits/kept")[1]["out_of_range"] == "refuse"


def test_only_an_admin_changes_settings(service: Serving) -> None:
    description = ask(service.url, "GET", "/openapi.json")[1]["paths"]["/v1/bandits/{bandit}"]
    assert "role `admin`" in description["patch"]["description"]
    assert change(service.url, "nobody", {"out_of_range": "clip"})[0] == 404


def test_a_changed_bandit_can_be_asked_for_as_it_was_and_as_it_is(service: Serving) -> None:
    def create_again(**settings: Any) -> int:
        body = {"name": "both", "arms": ["a", "b"], "policy": "uniform", "context": ["age"]}
        return ask(service.url, "POST", "/v1/bandits", body | settings)[0]

    assert create_again(out_of_range="accept") == 201
    changes = {"out_of_range": "clip", "context_ranges": {"age": [0, 120]}}
    assert change(service.url, "both", changes)[0] == 200
    assert create_again(out_of_range="accept") == 200
    assert create_again(**changes) == 200
    assert create_again(out_of_range="refuse") == 409
    assert create_again(**changes, max_open=2000) == 409
