"""The service over HTTP: what it does."""

import io
import json
import re
import shlex
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import jax
import numpy as np
import polars as pl
import pytest

from driftbandits import build_environment, simulate
from driftbandits.client import Client
from driftbandits.service_calls import ServiceError
from driftbandits.simulation.engine import block_keys
from tests.service.serving import Serving, ask, create, events_of, served, service

__all__ = ["service"]  # a fixture: pytest finds it by name

HOSTILE = 'it\'s "<script>" 🦜 ; DROP TABLE events --'


def test_four_lines_decide_and_learn(service: Serving) -> None:
    create(service.url, "stand")
    status, decision = ask(service.url, "POST", "/v1/bandits/stand/decisions", {})
    assert status == 200
    assert decision["probabilities"][decision["arm"]] == decision["probability"]
    assert sum(decision["probabilities"].values()) == pytest.approx(1)
    reward = {"id": decision["id"], "reward": 1}
    path = "/v1/bandits/stand/rewards"
    assert ask(service.url, "POST", path, reward)[1]["status"] == "learned"
    assert ask(service.url, "POST", path, reward)[1]["status"] == "duplicate"
    status, answer = ask(service.url, "POST", path, {**reward, "reward": 0})
    assert status == 409
    assert answer["error"]["code"] == "contradictory_reward"
    assert set(answer["error"]) == {"code", "message", "remedy"}


def test_the_same_id_is_the_same_decision(service: Serving) -> None:
    create(service.url, "twice")
    path = "/v1/bandits/twice/decisions"
    first = [ask(service.url, "POST", path, {"id": f"a{i}"})[1] for i in range(20)]
    for decision in first[:10]:
        body = {"id": decision["id"], "reward": 0.5}
        assert ask(service.url, "POST", "/v1/bandits/twice/rewards", body)[0] == 200
    again = ask(
        service.url, "POST", f"{path}/batch", {"decisions": [{"id": f"a{i}"} for i in range(20)]}
    )
    assert again[1]["decisions"] == first
    assert events_of(service.url, "twice")[0] == 20


def test_a_batch_of_rewards_answers_each(service: Serving) -> None:
    create(service.url, "many")
    asked = {"decisions": [{"id": f"b{i}"} for i in range(3)]}
    assert ask(service.url, "POST", "/v1/bandits/many/decisions/batch", asked)[0] == 200
    pairs = [("b0", 1), ("b0", 1), ("b1", 0), ("b1", 1), ("nobody", 1)]
    body = {"rewards": [{"id": id, "reward": reward} for id, reward in pairs]}
    _, answer = ask(service.url, "POST", "/v1/bandits/many/rewards/batch", body)
    found = [x.get("status") or x["error"]["code"] for x in answer["rewards"]]
    assert found == [
        "learned", "duplicate", "learned", "contradictory_reward", "unknown_decision",
    ]  # fmt: skip


def test_the_window_passes(service: Serving) -> None:
    create(service.url, "hasty", window=0.3, default_reward=0.0)
    _, decision = ask(service.url, "POST", "/v1/bandits/hasty/decisions", {})
    for _ in range(1000):
        if events_of(service.url, "hasty")[2]:
            break
        time.sleep(0.05)
    body = {"id": decision["id"], "reward": 1}
    status, answer = ask(service.url, "POST", "/v1/bandits/hasty/rewards", body)
    assert (status, answer["error"]["code"]) == (409, "expired_decision")


def test_arms_come_and_go(service: Serving) -> None:
    create(service.url, "arms")
    path = "/v1/bandits/arms/arms"
    for name in ("blue", HOSTILE):
        assert ask(service.url, "POST", path, {"name": name})[0] == 201
    assert ask(service.url, "POST", path, {"name": "blue"})[0] == 409
    assert ask(service.url, "POST", f"{path}/retire", {"name": "red"})[0] == 200
    _, bandit = ask(service.url, "POST", f"{path}/retire", {"name": "red"})
    assert [(arm["name"], arm["retired"]) for arm in bandit["arms"]] == [
        ("red", True), ("green", False), ("blue", False), (HOSTILE, False),
    ]  # fmt: skip
    body = {"decisions": [{}] * 50}
    made = ask(service.url, "POST", "/v1/bandits/arms/decisions/batch", body)[1]["decisions"]
    assert {decision["arm"] for decision in made} == {"green", "blue", HOSTILE}
    assert ask(service.url, "POST", f"{path}/restore", {"name": "red"})[0] == 200
    only = {"available": ["red"]}
    assert ask(service.url, "POST", "/v1/bandits/arms/decisions", only)[1]["arm"] == "red"


def test_a_bandit_with_an_odd_name(service: Serving) -> None:
    create(service.url, HOSTILE)
    path = f"/v1/bandits/{quote(HOSTILE, safe='')}"
    assert ask(service.url, "GET", path)[1]["name"] == HOSTILE
    assert ask(service.url, "POST", f"{path}/decisions", {"id": HOSTILE})[1]["id"] == HOSTILE
    assert ask(service.url, "DELETE", path)[0] == 204
    assert ask(service.url, "GET", path)[0] == 404


def test_creating_again(service: Serving) -> None:
    first = create(service.url, "again")
    assert create(service.url, "again")["seed"] == first["seed"]
    bandit = {"name": "again", "arms": ["other"], "policy": "thompson"}
    status, answer = ask(service.url, "POST", "/v1/bandits", bandit)
    assert (status, answer["error"]["code"]) == (409, "existing_name")


def test_the_log_as_a_file(service: Serving) -> None:
    create(service.url, "logged", context=["age", "hour"], policy="lin_ts")
    for i in range(5):
        body = {"id": f"l{i}", "context": {"hour": i, "age": 0.1}}
        ask(service.url, "POST", "/v1/bandits/logged/decisions", body)
        if i < 3:
            ask(service.url, "POST", "/v1/bandits/logged/rewards", {"id": f"l{i}", "reward": i / 2})
    csv = pl.read_csv(io.BytesIO(ask(service.url, "GET", "/v1/bandits/logged/log")[1]))
    content = ask(service.url, "GET", "/v1/bandits/logged/log?format=parquet")[1]
    table = pl.read_parquet(io.BytesIO(content))
    for found in (csv, table):
        assert found["id"].to_list() == [f"l{i}" for i in range(5)]
        assert found["context.hour"].to_list() == [0, 1, 2, 3, 4]
        assert found["reward"].to_list() == [0, 0.5, 1, None, None]
        assert found["status"].to_list() == ["rewarded"] * 3 + ["open"] * 2
        assert found["probability"].min() > 0
    assert ask(service.url, "GET", "/v1/bandits/logged/log?format=xls")[0] == 422


def test_an_empty_log_has_its_columns(service: Serving) -> None:
    create(service.url, "empty")
    content = ask(service.url, "GET", "/v1/bandits/empty/log?format=parquet")[1]
    table = pl.read_parquet(io.BytesIO(content))
    assert table.height == 0
    assert "probability" in table.columns


def test_health_metrics_and_pages(service: Serving) -> None:
    assert ask(service.url, "GET", "/healthz")[0] == 200
    assert ask(service.url, "GET", "/readyz")[0] == 200
    text = ask(service.url, "GET", "/metrics")[1].decode()
    assert 'driftbandits_events_total{kind="decision"}' in text
    assert b"<html" in ask(service.url, "GET", "/")[1].lower()
    assert b"<html" in ask(service.url, "GET", "/docs")[1].lower()
    assert ask(service.url, "GET", "/openapi.json")[1]["openapi"].startswith("3.")


def test_a_service_whose_file_is_gone_is_not_ready(tmp_path: Path) -> None:
    with served(tmp_path) as serving:
        assert ask(serving.url, "GET", "/readyz")[0] == 200
        (tmp_path / "driftbandits.sqlite").unlink()
        for _ in range(1000):
            status, answer = ask(serving.url, "GET", "/readyz")
            if status != 200:
                break
            time.sleep(0.01)
        assert (status, answer["error"]["code"]) == (503, "unhealthy_database")
        assert ask(serving.url, "GET", "/healthz")[0] == 200


def test_a_graceful_stop_keeps_everything(tmp_path: Path) -> None:
    with served(tmp_path) as serving:
        create(serving.url, "kept", policy="tracker", seed=3)
        for i in range(30):
            body = {"id": f"k{i}"}
            ask(serving.url, "POST", "/v1/bandits/kept/decisions", body)
            ask(serving.url, "POST", "/v1/bandits/kept/rewards", {**body, "reward": i % 2})
        before = events_of(serving.url, "kept")
        assert serving.stop() == 0
        serving.start()
        assert events_of(serving.url, "kept") == before
        body = {"id": "k3"}
        assert (
            ask(serving.url, "POST", "/v1/bandits/kept/rewards", {**body, "reward": 1})[1]["status"]
            == "duplicate"
        )


@pytest.mark.parametrize("policy", ["thompson", "tracker"])
def test_decides_as_the_simulation_does(service: Serving, policy: str) -> None:
    """Fed with a simulated run's rewards, the service pulls the same arms."""
    steps, name = 150, f"simulated-{policy}"
    trace = simulate(policy, "bernoulli(num_arms=4)", horizon=steps, seed=5, record_every=1)
    pulls = np.diff(trace.pulls[0], axis=0, prepend=0).argmax(axis=1)
    arms = [str(i) for i in range(4)]
    bandit = {"name": name, "arms": arms, "policy": policy, "seed": 5, "horizon": steps}
    assert ask(service.url, "POST", "/v1/bandits", bandit)[0] == 201
    world = build_environment("bernoulli(num_arms=4)")
    keys = block_keys(5, 1, 0)
    state, made = world.init(keys.world_start[0]), []
    rewards = jax.jit(world.rewards)
    with Client(service.url) as client:
        for t in range(steps):
            decision = client.decide(name)
            arm = int(decision.arm)
            moment = jax.random.fold_in(keys.steps[0, 1], t)
            client.reward(
                name, decision.id, float(rewards(moment, state, np.zeros(0)).sampled[arm])
            )
            state = world.advance(state, arm)
            made.append(arm)
    assert made == pulls.tolist()


def test_the_client_meets_the_service(service: Serving) -> None:
    with Client(service.url) as client:
        client.create("friend", ["a", "b"], context=["x"], policy="lin_ts")
        made = client.decide_many("friend", [{"context": [i]} for i in range(3)])
        statuses = client.reward_many("friend", [(decision.id, 1.0) for decision in made])
        assert [outcome.status for outcome in statuses] == ["learned"] * 3
        client.add_arm("friend", "c")
        client.retire_arm("friend", "a")
        client.restore_arm("friend", "a")
        assert [arm.name for arm in client.bandit("friend").arms] == ["a", "b", "c"]
        assert len(client.series("friend")["last"]) == 3
        assert next(client.log("friend", "csv")).startswith(b"id,time,context.x,arm,")
        assert "friend" in [bandit.name for bandit in client.bandits()]
        client.delete("friend")
        with pytest.raises(ServiceError, match="no bandit named 'friend'"):
            client.bandit("friend")


def test_the_description_names_every_message(service: Serving) -> None:
    described = json.dumps(ask(service.url, "GET", "/openapi.json")[1])
    for name in ("NewBandit", "NewDecision", "MadeDecision", "NewReward", "Learned", "Error"):
        assert f'"#/components/schemas/{name}"' in described


def test_the_lines_of_the_readme_run(service: Serving) -> None:
    text = (Path(__file__).parents[3] / "README.md").read_text()
    _, lines = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    first, *curls = lines.splitlines()
    assert first == "driftbandits serve --without-keys &"
    answers = []
    for line in curls:
        line = line.replace("localhost:8000", service.url)
        done = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True)
        answers.append(done.stdout)
    assert '"policy":"tracker"' in answers[0]
    assert '"id":"visit-1","arm":' in answers[1]
    assert '"status":"learned"' in answers[2]
    assert answers[3].splitlines()[1].startswith("visit-1,")
    assert events_of(service.url, "shop")[:2] == (1, 1)
