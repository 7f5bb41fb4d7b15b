"""What would keep other bandits waiting is refused before it is created, or before it grows."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from driftbandits import Agent, InputError
from driftbandits.agents.programs import compiled_programs
from driftbandits.service import errors
from driftbandits.service.engine.engine import Engine
from driftbandits.service.errors import ApiError
from driftbandits.service.http import handlers, trial
from driftbandits.service.http.messages import NewArm
from driftbandits.service.http.trial import LARGEST, check_sizes, try_out
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG, live, play
from tests.service.serving import Serving, ask, service

__all__ = ["service"]  # a fixture: pytest finds it by name

TWO = {"arms": ["a", "b"], "policy": "thompson"}


def test_growth_that_was_tried_out_compiles_no_program() -> None:
    agent = Agent(["a", "b"], policy="thompson", horizon=77)  # as no other test has
    id = agent.decide(now=0).id
    try_out({**TWO, "horizon": 77, "arms": ["0", "1", "2", "3"]})
    compiled = compiled_programs.cache_info().misses
    agent.add_arm("c")
    agent.reward(id, 1.0, now=0)
    assert set(agent.decide(now=0).probabilities) == {"a", "b", "c"}
    loops: Any = agent._book.learner._programs.few
    assert [loops.act._cache_size(), loops.learn._cache_size()] == [1, 1]
    assert compiled_programs.cache_info().misses == compiled


def test_a_range_of_the_context_need_not_include_0() -> None:
    ranges = {"age": [18, 120], "debt": [-9, -1]}
    config = {"context": ["age", "debt", "x"], "context_ranges": ranges}
    try_out({**TWO, **config, "policy": "lin_ucb"})


def times(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> list[float]:
    """Pairs take so long, one after the other."""
    left = list(seconds)
    monkeypatch.setattr(trial, "seconds_of_pair", lambda *_: left.pop(0))
    return left


def test_a_policy_that_takes_too_long_for_its_arms_is_refused(monkeypatch) -> None:
    left = times(monkeypatch, 0.3, 0.2, 0.11, 0.0)
    with pytest.raises(ApiError, match="so few for thompson that a decision and its reward") as no:
        try_out(TWO)
    assert "take no more than 0.1 seconds, got room for 2 arms" in str(no.value)
    assert left == [0.0]


def test_a_bandit_that_is_too_slow_is_told_how_wide_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    times(monkeypatch, 2.0)
    config = {"arms": {"a": {"x": 1}, "b": {"x": 2}}, "features": ["x"], "context": ["y", "z"]}
    with pytest.raises(ApiError) as no:
        trial.try_out({**config, "policy": "lin_ucb", "seed": 1})
    assert "arms, context, features must be so few for lin_ucb" in str(no.value)
    assert "got room for 2 arms, 2 columns of the context, 1 of features" in str(no.value)


def test_a_busy_machine_is_given_several_tries(monkeypatch) -> None:
    left = times(monkeypatch, 0.3, 0.2, 0.01, 7.0)
    try_out(TWO)
    assert left == [7.0]


def test_one_that_is_much_too_slow_is_tried_once(monkeypatch) -> None:
    left = times(monkeypatch, 3.0, 0.0)
    with pytest.raises(ApiError):
        try_out(TWO)
    assert left == [0.0]


@pytest.mark.parametrize("policy", ["neural_ucb(train_every=5000)", "neural_linear"])
def test_what_a_policy_does_now_and_then_is_tried_with_a_full_memory(policy: str) -> None:
    book = trial.busy_book({**TWO, "context": ["x"]}, policy)
    before = book.learner.state()
    trial.seconds_of_pair(book, "a")
    after = book.learner.state()
    (seen,) = (name for name in before if name.endswith(".memory.seen"))
    assert after[seen] == after[seen.replace("seen", "rewards")].size
    weights = [name for name in before if "memory" not in name and before[name].size > 50]
    assert any((before[name] != after[name]).any() for name in weights), "it was not trained"


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("recurrent(layers=20000)", "layers must be a whole number of at most 8, got 20000"),
        ("recurrent(hidden=1025)", "hidden must be a whole number of at most 1024, got 1025"),
        ("neural_linear(train_steps=1000000)", "train_steps must be .* at most 1000, got 1000000"),
        (f"tracker(drifts={[0.1] * 65})", "drifts must be a list of at most 64 values, got '65"),
        ("recurrent(hidden=1024, layers=8)", "policy must be one that remembers at most 64 MB"),
    ],
)
def test_sizes_are_bounded_before_anything_is_compiled(policy: str, rule: str) -> None:
    compiled = compiled_programs.cache_info().misses
    with pytest.raises(InputError, match=rule):
        try_out({**TWO, "policy": policy})
    assert compiled_programs.cache_info().misses == compiled


def test_the_largest_sizes_are_allowed() -> None:
    check_sizes({**TWO, "policy": f"neural_linear(batch={LARGEST['batch']}, layers=8)"})


def test_a_large_network_is_refused_over_http(service: Serving) -> None:
    bandit = {"name": "deep", "arms": ["a", "b"], "policy": "recurrent(layers=20000)"}
    status, answer = ask(service.url, "POST", "/v1/bandits", bandit)
    assert (status, answer["error"]["code"]) == (422, "bad_value")


def test_an_arm_past_the_speed_limit_is_refused_as_creating_is(tmp_path: Path, monkeypatch) -> None:
    """Also one of a bandit that was not loaded yet, and only where the policy must grow."""
    tried: list[int] = []

    def refuse_eight(config: dict[str, Any]) -> None:
        tried.append(len(config["arms"]))
        if len(config["arms"]) == 8:
            raise errors.bad_value("too slow")

    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", CONFIG)
    monkeypatch.setattr(handlers, "try_out", refuse_eight)

    async def story(engine: Engine) -> list[str]:
        forwarder: Any = SimpleNamespace(look_for=lambda _: asyncio.sleep(0))
        asked, request = handlers.Handlers(store, engine, forwarder), SimpleNamespace(bandit="shop")
        for name in "cd":
            assert (await asked.add_arm(request, NewArm(name))).status == 201  # type: ignore[arg-type]
        with pytest.raises(ApiError, match="too slow"):
            await asked.add_arm(request, NewArm("e"))  # type: ignore[arg-type]
        return list(engine.live_bandits["shop"].book.arms.names)

    assert play(store, story) == ["a", "b", "c", "d"]
    assert tried == [4, 8]
    store.close()


def test_a_series_of_too_many_numbers_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(handlers, "MOST_NUMBERS", 100)
    bandit = live(CONFIG)
    bandit.row = SimpleNamespace(name="shop")  # type: ignore[assignment]
    assert handlers.series_later(bandit, 50, 1.0)().status == 200
    with pytest.raises(ApiError, match="points must be at most 50 with 2 arms, got 51"):
        handlers.series_later(bandit, 51, 1.0)
