"""Slates that several callers ask for at once."""

from typing import Any

import pytest

from driftbandits.agents.learner import DivergenceError, Learner
from driftbandits.agents.requests import Request
from driftbandits.logs.replay import new_book, replay
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.errors import ApiError
from driftbandits.service.store.records import BanditRow, Lease

CONFIG: dict[str, Any] = {
    "arms": {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}, "features": {"x": "number"},
    "context": {"n": "number"}, "policy": "lin_ts", "seed": 4,
}  # fmt: skip


def new_bandit() -> LiveBandit:
    row = BanditRow(1, "shop", CONFIG, 0.0, "one", "http://one", True)
    return LiveBandit(row, Lease(1, 1), new_book(CONFIG, remember=0), 0)


def decided(live: LiveBandit, *callers: list[Request]) -> list[Any]:
    return live.decide(callers, 0.0, lambda *_: {})


def check_replayed(live: LiveBandit) -> None:
    """The log gives the same learner, which has seen the same."""
    book = new_book(CONFIG, remember=0)
    assert replay(book, live.events) == 0
    assert book.contexts.state() == live.book.contexts.state()
    assert book.features.table.tolist() == live.book.features.table.tolist()
    for path, array in live.book.learner.state().items():
        assert array.tobytes() == book.learner.state()[path].tobytes()


def slate(k: int, n: float = 0.0, id: str = "s") -> Request:
    return Request({"n": n}, id=id, k=k)


def test_all_get_the_same_places() -> None:
    live = new_bandit()
    one, two, three = decided(live, [slate(2)], [slate(3)], [slate(1), slate(1, id="t")])
    assert two[:2] == one
    assert three[0] == one[0]
    assert {each.arm for each in two} == {"a", "b", "c"}
    assert [event.id for event in live.events] == ["s.1", "s.2", "s.3", "t.1"]
    assert [event.place for event in live.events] == [1, 2, 3, 1]
    check_replayed(live)


def test_all_places_see_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    live, seen, act_once = new_bandit(), [], Learner.act_once

    def noting(self: Learner, context: Any, *arguments: Any) -> Any:
        seen.append(context.tolist())
        return act_once(self, context, *arguments)

    monkeypatch.setattr(Learner, "act_once", noting)
    for step, n in enumerate((5.0, -70.0, 8.0, 1000.0)):
        decided(live, [slate(3, n, f"s{step}")], [slate(2, n, f"t{step}")])
    slates = [seen[first : first + count] for first, count in starts(4 * [3, 2])]
    assert all(each == [each[0]] * len(each) for each in slates)
    assert live.book.contexts.state()["n"]["count"] == len(slates) == 8
    monkeypatch.undo()
    check_replayed(live)


def starts(counts: list[int]) -> list[tuple[int, int]]:
    return [(sum(counts[:place]), count) for place, count in enumerate(counts)]


def test_a_caller_that_is_refused_leaves_no_trace() -> None:
    live = new_bandit()
    wrong = [Request({"n": 1e6}, id="s.2"), slate(3), slate(4, id="t")]
    one, refusal, two = decided(live, [slate(1)], wrong, [slate(2)])
    assert isinstance(refusal, ApiError)
    assert refusal.status == 422
    assert two[:1] == one
    assert [event.id for event in live.events] == ["s.1", "s.2"]
    assert len({each.arm for each in two}) == 2
    check_replayed(live)


def test_only_the_caller_whose_slate_cannot_be_decided_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live, act_once = new_bandit(), Learner.act_once

    def refusing(self: Learner, context: Any, *arguments: Any) -> Any:
        if context[0] > 4:
            raise DivergenceError("cannot decide here")
        return act_once(self, context, *arguments)

    decided(live, *([slate(1, n=n, id=str(n))] for n in (-1.0, 0.0, 1.0, 0.5)))
    monkeypatch.setattr(Learner, "act_once", refusing)
    outlier = Request({"n": 1e6}, id="far", k=2, arms={"a": {"x": 9}, "c": {"x": 7}})
    one, refusal, two = decided(live, [slate(2)], [outlier], [slate(3)])
    assert isinstance(refusal, ApiError)
    assert two[:2] == one
    assert [event.id for event in live.events][4:] == ["s.1", "s.2", "s.3"]
    monkeypatch.undo()
    check_replayed(live)


def test_arms_of_many_decisions_are_checked_step_by_step() -> None:
    live = new_bandit()
    request = Request({"n": 0.0}, arms={"a": {"x": 1}, "b": {"x": 2}})
    steps = live.deciding([[request] * 20, [request] * 20], 0.0, lambda *_: {})
    paused = 0
    while not live.book.learner.decisions:
        next(steps)
        paused += 1
    assert paused > 36  # before the first of them is decided
