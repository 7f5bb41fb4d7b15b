"""The decision book: what becomes of decisions and rewards, before anybody refuses anything."""

from typing import Any

import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.agents.admission import DecisionBatch
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.requests import Request
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.agents.settings import AgentSettings

ELSEWHERE = PastDecision(1, np.float32([0.5, 0.5]), reward=None, expired=False, elsewhere=True)
REWARDED = PastDecision(0, np.float32([1.0, 0.0]), reward=2.0, expired=False)


def new_book(**settings: Any) -> DecisionBook:
    return DecisionBook(["red", "green"], AgentSettings(policy="thompson", **settings))


def admitted(book: DecisionBook, *ids: str, past: Any = None) -> DecisionBatch:
    batch = DecisionBatch({}, {})
    book.admit(batch, ids, [Request() for _ in ids], past)
    return batch


def decide(book: DecisionBook, *ids: str, now: float = 0.0) -> None:
    new = admitted(book, *ids).new
    book.expire(now, room=len(new))
    book.decide(new)


def judged(book: DecisionBook, *rewards: tuple[str, float], past: Any = None) -> list[str]:
    return [verdict.status for verdict in book.judge(rewards, past).verdicts]


def test_an_id_is_new_then_open_then_past() -> None:
    book = new_book()
    assert list(admitted(book, "x", "y", "x").new) == ["x", "y"]
    decide(book, "x")
    arm, probabilities = book.open["x"].arm, book.open["x"].probabilities
    batch = admitted(book, "x", "y")
    assert (list(batch.new), list(batch.known)) == (["y"], ["x"])
    book.settle(["x"], [1.0])
    past = book.past["x"]
    assert (past.arm, *past[2:]) == (arm, 1.0, False, False)
    np.testing.assert_array_equal(past.probabilities, probabilities)
    assert list(admitted(book, "x").known) == ["x"]


def test_a_caller_is_admitted_with_all_requests_or_none() -> None:
    book, batch = new_book(), DecisionBatch({}, {})
    decide(book, "open")
    book.admit(batch, ["first"], [Request()])
    with pytest.raises(InputError, match="available must be"):
        book.admit(batch, ["open", "fine", "bad"], [Request(), Request(), Request(available=[])])
    assert not batch.known
    book.admit(batch, ["last", "first"], [Request(), Request(available=[])])
    assert list(batch.new) == ["first", "last"]


def test_judging_changes_nothing() -> None:
    book = new_book()
    decide(book, "x", "y")
    batch = book.judge([("x", 1.0), ("x", 1.0), ("x", 0.0), ("y", 0.3), ("z", 1.0)])
    statuses = [verdict.status for verdict in batch.verdicts]
    assert statuses == ["learned", "duplicate", "contradictory", "learned", "unknown"]
    assert batch.verdicts[2].before == 1.0
    assert batch.new == {"x": 1.0, "y": 0.3}
    assert list(book.open) == ["x", "y"]
    assert book.counts == (2, 0, 0)


def test_what_another_memory_knows_is_judged_by_the_same_rules() -> None:
    book = new_book(remember=0)
    past = {"here": REWARDED, "there": ELSEWHERE, "late": REWARDED._replace(expired=True)}
    rewards = [("here", 2.0), ("here", 3.0), ("there", 1.0), ("late", 2.0), ("nowhere", 1.0)]
    expected = ["duplicate", "contradictory", "elsewhere", "expired", "unknown"]
    assert judged(book, *rewards, past=past) == expected
    batch = admitted(book, "here", "there", "new", past=past)
    assert batch.known == {"here": REWARDED, "there": ELSEWHERE}
    assert list(batch.new) == ["new"]


def test_an_expired_decision_has_learned_its_default_or_nothing() -> None:
    for default in (None, 0.5):
        book = new_book(window=10.0, default_reward=default)
        decide(book, "x", now=100.0)
        assert book.expire(109.0) == []
        assert book.expire(110.0) == ["x"]
        assert (book.past["x"].reward, book.past["x"].expired) == (default, True)
        assert judged(book, ("x", 0.5)) == ["expired"]
        assert book.counts == (1, 0, 1)
