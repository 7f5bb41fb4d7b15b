"""Mixed traffic with kills, exports, creates, arms, corrections and poisons: nothing is lost.

Under `make soak` and `make soak-service` for SOAK_MINUTES (30), half with each database.
"""

import os
import random
from pathlib import Path

import pytest

from driftbandits.service.store.records import Event
from tests.conftest import SOAK
from tests.service.serving import Serving
from tests.service.soak import Plan, Soak
from tests.service.soak_ledger import Answered, Known, compare, compare_events, from_events
from tests.service.soak_memory import Growth, Sample, growth_of
from tests.service.store.databases import decision, new_database, postgres, reward

__all__ = ["postgres"]  # a fixture: pytest finds it by name
ARMS = ["red", "green", "blue", "white", "black"]
MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
SEED = int(os.environ.get("SOAK_SEED", random.randrange(10**6)))
MOST_MEMORY = 1000  # MB


def plan(short_seconds: float, short_kills: int) -> Plan:
    seconds = 60 * MINUTES / 2 if SOAK else short_seconds
    kills, learners = (int(seconds / 40), 100) if SOAK else (short_kills, 3)
    return Plan(seconds, kills, SEED, learners)


def check(soak: Soak) -> None:
    assert not soak.ledger.problems, "\n".join(soak.ledger.problems)
    told = soak.ledger.acknowledged()
    assert min(told["decisions"], told["rewards"]) > 100, "hardly anything was asked"
    assert soak.memory.most() < MOST_MEMORY
    growth = soak.memory.growth()
    assert growth is None or growth.is_flat, growth


def known_and_its_log() -> tuple[Known, list[Event]]:
    decisions = [decision(1, "a"), decision(2, "b"), decision(3, "c")]
    correction = Event(6, "correction", 1.7e9, "a", reward=None)
    expiry = Event(5, "expiry", 1.7e9, "b")
    known = Known(
        "shop",
        {"arms": ARMS},
        {e.id: Answered(ARMS[e.arm], e.probability, e.probabilities) for e in decisions},
        rewards={"a": 0.1},
        expired={"b"},
        corrections={"a": None},
        arms=list(ARMS),
    )
    return known, [*decisions, reward(4, "a"), expiry, correction]


def test_a_log_with_everything_has_no_problem() -> None:
    known, events = known_and_its_log()
    assert compare_events(known, events) == []
    assert compare(known, from_events(events, ARMS), exactly=True) == []


@pytest.mark.parametrize("lost", range(6))
def test_every_lost_event_is_found(lost: int) -> None:
    known, events = known_and_its_log()
    after = [event._replace(seq=event.seq - 1) for event in events[lost + 1 :]]
    if events[lost].kind == "decision":  # its outcome cannot be there without it
        after = [event for event in after if event.id != events[lost].id]
    assert compare_events(known, events[:lost] + after)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, {"arm": 4}),
        (0, {"probability": 0.5}),
        (0, {"probabilities": b"1234" * 5}),
        (2, {"seq": 9}),
        (3, {"reward": 0.2}),
        (3, {"id": "c"}),
        (4, {"kind": "reward", "reward": 0.1}),
        (5, {"reward": 1.0}),
        (5, {"kind": "arm_added"}),
        (5, {"kind": "reward", "reward": 0.1}),
    ],
)
def test_every_difference_is_found(number: int, change: dict[str, object]) -> None:
    known, events = known_and_its_log()
    events[number] = events[number]._replace(**change)
    assert compare_events(known, events)


def test_what_nobody_asked_for_is_found() -> None:
    known, events = known_and_its_log()
    assert compare_events(known, [*events, decision(7, "nobody's")])
    known.unanswered.add("nobody's")
    assert compare_events(known, [*events, decision(7, "nobody's")]) == []
    assert compare_events(known, [*events, reward(7, "c")])


def memory(per_second: float, *, accounted: float = 0.0, peak: float = 0.0) -> Growth:
    """Judged by the last 200 of 600 seconds, of which the first 200 have kills."""
    warming_up = [Sample(t, 100.0 + t) for t in range(400)]
    saw_tooth = [
        Sample(t, 600 + per_second * (t - 400) + 30 * (t % 10 > 2) + peak * (480 < t < 520),
               accounted * (t - 400))
        for t in range(400, 601)
    ]  # fmt: skip
    return growth_of(warming_up + saw_tooth, since=200.0, until=600.0)


def test_a_leak_is_seen() -> None:
    leak = memory(0.1)
    assert not leak.is_flat
    assert leak.megabytes == pytest.approx(20, rel=0.05)
    assert leak.share == pytest.approx(0.1, rel=0.05)


def test_memory_that_comes_and_goes_is_flat() -> None:
    assert memory(0.0) == Growth(0.0, 0.0)
    assert memory(0.0, peak=100).is_flat


def test_decisions_that_are_kept_on_purpose_are_no_leak() -> None:
    assert memory(0.1, accounted=0.1).megabytes == pytest.approx(0.0, abs=1e-6)
    assert not memory(0.2, accounted=0.1).is_flat


def test_a_slope_is_no_leak_before_it_amounts_to_something() -> None:
    assert Growth(9.0, 0.2).is_flat
    assert Growth(100.0, 0.04).is_flat
    assert not Growth(11.0, 0.06).is_flat


def test_soak_with_sqlite(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Serving("--data", str(tmp_path), covered=False, errors=log) as worker:
        database = f"sqlite:///{tmp_path}/driftbandits.sqlite"
        soak = Soak([worker], database, plan(15, 2), log)
        soak.run()
    check(soak)


def test_soak_with_postgresql_and_two_workers(postgres, tmp_path: Path) -> None:
    log, database = tmp_path / "log", new_database(postgres)
    workers = [Serving("--database", database, covered=False, errors=log) for _ in range(2)]
    with workers[0], workers[1]:
        soak = Soak(workers, database, plan(10, 1), log)
        soak.run()
    check(soak)
