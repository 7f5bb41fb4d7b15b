"""The numbers of a bandit's page, against plain counting."""

import json
import math
from typing import Any

import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.service.engine import monitor as monitoring
from driftbandits.service.engine import probability_ring
from driftbandits.service.engine.monitor import Monitor
from driftbandits.service.engine.probability_ring import ProbabilityRing

NAMES = ["red", "green"]


def decide(
    monitor: Monitor, time: float, ids: list[str], arms: list[int], probabilities: list[float]
) -> None:
    table = np.tile(np.float32(probabilities), (len(ids), 1))
    monitor.decided_many(ids, time, np.array(arms), table)


def small_monitor() -> Monitor:
    """Decisions at 100, 105 and 110; rewards at 106 and 120; now is 120."""
    monitor = Monitor(2)
    decide(monitor, 100.0, ["a", "b"], [0, 1], [0.25, 0.75])
    decide(monitor, 105.0, ["c"], [1], [0.5, 0.5])
    decide(monitor, 110.0, ["d", "e"], [1, 1], [0.0, 1.0])
    monitor.answered_many(["a", "b", "c"], 106.0, np.array([1.0, 2.0, 4.0]))
    monitor.answered_many(["d"], 120.0, np.array([5.0]))
    monitor.expired_many(["e"], 120.0)
    return monitor


def test_the_series_counts_by_spans_of_time() -> None:
    found = small_monitor().series(NAMES, 2, 120.0, 7)
    assert (found["from"], found["to"], found["times"]) == (100.0, 120.0, [110.0, 120.0])
    assert found["arms"] == NAMES
    assert found["decisions"] == [3, 2]
    assert found["share"] == {
        "red": [pytest.approx(1 / 3), 0.0],
        "green": [pytest.approx(2 / 3), 1],
    }
    assert found["probability"]["red"] == [pytest.approx(1 / 3), 0.0]
    assert found["probability"]["green"] == [pytest.approx(2 / 3), 1.0]
    totals = [found[name] for name in ("open", "expired", "decisions_total", "rewards_total")]
    assert totals == [7, 1, 5, 4]
    json.dumps(found, allow_nan=False)


def test_rewards_have_a_band_where_there_are_two() -> None:
    found = small_monitor().series(NAMES, 2, 120.0, 0)
    assert found["reward"]["count"] == [3, 1]
    assert found["reward"]["mean"] == [pytest.approx(7 / 3), 5.0]
    half = 1.959964 * np.std([1, 2, 4], ddof=1) / math.sqrt(3)
    assert found["reward"]["low"] == [pytest.approx(7 / 3 - half), None]
    assert found["reward"]["high"] == [pytest.approx(7 / 3 + half), None]
    assert found["arm_reward"]["red"] == {
        "mean": [1.0, None],
        "low": [None, None],
        "high": [None, None],
        "count": [1, 0],
    }
    assert found["arm_reward"]["green"]["mean"] == [3.0, 5.0]
    assert found["arm_reward"]["green"]["low"][1] is None


def test_large_rewards_lose_no_digits_in_the_band() -> None:
    monitor = Monitor(1)
    decide(monitor, 0.0, ["a", "b"], [0, 0], [1.0])
    monitor.answered_many(["a", "b"], 1.0, np.array([1e9, 1e9 + 1]))
    found = monitor.series(["only"], 1, 1.0, 0)["reward"]
    assert found["high"][0] - found["low"][0] == pytest.approx(2 * 1.959964 * 0.5, rel=1e-5)


def test_the_last_decisions_come_newest_first_with_their_fate() -> None:
    last = small_monitor().series(NAMES, 2, 120.0, 0)["last"]
    assert [row["id"] for row in last] == ["e", "d", "c", "b", "a"]
    assert last[0] == {
        "id": "e", "time": 110.0, "arm": "green", "probability": 1.0, "reward": None,
        "status": "expired",
    }  # fmt: skip
    assert (last[4]["arm"], last[4]["probability"], last[4]["reward"]) == ("red", 0.25, 1.0)
    assert last[4]["status"] == "rewarded"


def test_nothing_yet_is_an_answer_too() -> None:
    found = Monitor(2).series(NAMES, 3, 50.0, 0)
    assert found["decisions"] == [0, 0, 0]
    assert found["share"]["red"] == found["reward"]["mean"] == [None] * 3
    assert found["last"] == []
    assert found["from"] < found["to"] == 50.0
    assert found["alarms"] == {"red": [], "green": []}


def test_a_clock_that_went_back_loses_nothing() -> None:
    found = small_monitor().series(NAMES, 4, 90.0, 0)
    assert found["to"] == 120.0
    assert sum(found["decisions"]) == 5
    assert sum(found["reward"]["count"]) == 4


def test_rewards_of_decisions_that_are_not_kept_count_only_for_the_total() -> None:
    monitor = small_monitor()
    monitor.answered_many(["who", "else"], 121.0, np.array([9.0, 9.0]))
    monitor.expired_many(["nobody"], 121.0)
    found = monitor.series(NAMES, 1, 121.0, 0)
    assert (found["rewards_total"], found["expired"]) == (6, 2)
    assert found["reward"]["count"] == [4]
    assert found["reward"]["mean"] == [3.0]


def test_an_arm_that_came_later_had_no_chance_before() -> None:
    monitor = small_monitor()
    decide(monitor, 115.0, ["f", "g"], [2, 2], [0.0, 0.5, 0.5])
    found = monitor.series([*NAMES, "blue"], 2, 120.0, 0)
    assert found["probability"]["blue"] == [0.0, pytest.approx(0.25)]
    assert found["share"]["blue"] == [0.0, 0.5]
    assert found["last"][0]["arm"] == "blue"


def test_fewer_probabilities_leave_nothing_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "CAPACITY", 2)
    monitor = Monitor(3)
    decide(monitor, 1.0, ["a", "b"], [2, 2], [0.0, 0.5, 0.5])
    decide(monitor, 2.0, ["c", "d"], [0, 1], [0.5, 0.5])
    assert monitor.series([*NAMES, "blue"], 1, 3.0, 0)["probability"]["blue"] == [0.0]


def test_an_arm_that_was_never_played_is_shown() -> None:
    found = small_monitor().series([*NAMES, "blue"], 2, 120.0, 0)
    assert found["share"]["blue"] == found["probability"]["blue"] == [0.0, 0.0]
    assert found["alarms"]["blue"] == []


@pytest.mark.parametrize("points", [0, -1, 1001, 2.5])
def test_a_foolish_number_of_points_is_refused(points: Any) -> None:
    with pytest.raises(InputError, match="points must be a whole number of at"):
        small_monitor().series(NAMES, points, 120.0, 0)


def play(monitor: Monitor, batches: list[int], seed: int) -> list[dict[str, Any]]:
    """Random traffic through the monitor, and a plain list of it."""
    random, rows, now = np.random.default_rng(seed), [], 0.0
    for size in batches:
        now += random.exponential()
        ids = [f"{now}-{index}" for index in range(size)]
        arms, probabilities = random.integers(0, 3, size), random.dirichlet(np.ones(3), size)
        monitor.decided_many(ids, now, arms, probabilities.astype(np.float32))
        rows += [
            {"id": id, "time": now, "arm": int(arm), "probabilities": row, "reward": None}
            for id, arm, row in zip(ids, arms, probabilities, strict=True)
        ]
        waiting = [row for row in rows if row["reward"] is None and random.random() < 0.3]
        rewards, now = random.normal(size=len(waiting)), now + 0.1
        monitor.answered_many([row["id"] for row in waiting], now, rewards)
        for row, reward in zip(waiting, rewards.tolist(), strict=True):
            row |= {"reward": reward, "answered": now}
    return rows


@pytest.mark.parametrize("batches", [[1] * 120, [7, 30, 1, 50, 13, 50], [120], [20, 75, 5]])
def test_a_full_ring_keeps_the_newest(batches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "CAPACITY", 50)
    monitor = Monitor(3)
    rows = play(monitor, batches, seed=5)
    kept, end = rows[-50:], 1e3
    found = monitor.series(["a", "b", "c"], 4, end, 0)
    width = (end - kept[0]["time"]) / 4

    def bucket(time: float) -> int:
        return min(int((time - kept[0]["time"]) / width), 3)

    assert found["from"] == kept[0]["time"]
    assert (
        found["decisions"] == np.bincount([bucket(row["time"]) for row in kept], None, 4).tolist()
    )
    for arm, name in enumerate("abc"):
        rewards = [row["reward"] for row in kept if row["arm"] == arm and row["reward"] is not None]
        assert sum(found["arm_reward"][name]["count"]) == len(rewards)
        first = [row["probabilities"][arm] for row in kept if bucket(row["time"]) == 0]
        assert found["probability"][name][0] == pytest.approx(np.mean(first), rel=1e-5)
    assert [row["id"] for row in found["last"]] == [row["id"] for row in kept[:-21:-1]]
    assert [row["reward"] for row in found["last"]] == [row["reward"] for row in kept[:-21:-1]]
    assert found["decisions_total"] == len(rows)
    assert found["rewards_total"] == sum(row["reward"] is not None for row in rows)


def test_the_arm_that_changed_has_the_alarm() -> None:
    monitor, random = Monitor(2), np.random.default_rng(0)
    for second in range(200):
        ids = [f"{second}-{index}" for index in range(10)]
        arms = np.arange(10) % 2
        rates = np.where((arms == 1) & (second >= 120), 0.8, 0.3)
        decide(monitor, 5000.0 + second, ids, arms.tolist(), [0.5, 0.5])
        monitor.answered_many(ids, 5000.5 + second, (random.random(10) < rates).astype(float))
    found = monitor.series(NAMES, 10, 5200.0, 0)["alarms"]
    assert found["red"] == []
    (alarm,) = found["green"]
    assert alarm["time"] == pytest.approx(5120, abs=8)
    assert alarm["time"] < alarm["raised"] < 5150
    assert alarm["before"] < 0.4 < 0.6 < alarm["after"]


def test_the_newest_alarms_are_kept() -> None:
    monitor = Monitor(1)
    for turn in range(25):
        ids = [f"{turn}-{index}" for index in range(200)]
        decide(monitor, float(turn), ids, [0] * 200, [1.0])
        monitor.answered_many(ids, float(turn), np.full(200, float(turn % 2)))
    alarms = monitor.series(["only"], 1, 25.0, 0)["alarms"]["only"]
    assert [alarm["raised"] for alarm in alarms] == [float(turn) for turn in range(5, 25)]


def test_a_copy_shows_the_moment_that_it_was_made() -> None:
    monitor = small_monitor()
    before, copy = monitor.series(NAMES, 3, 120.0, 2), monitor.copy()
    decide(monitor, 119.0, ["f"], [0], [1.0, 0.0])
    monitor.answered_many(["f"], 119.5, np.array([9.0]))
    assert copy.series(NAMES, 3, 120.0, 2) == before
    assert monitor.series(NAMES, 3, 120.0, 2) != before


def test_a_copy_is_not_changed_by_more_decisions_and_more_arms() -> None:
    ring, random = ProbabilityRing(1000), np.random.default_rng(0)
    rows = random.random((1000, 3)).astype(np.float32)
    ring.write(0, rows)
    copy = ring.copy()
    new = random.random((400, 5)).astype(np.float32)
    ring.write(200, new)
    for arm in range(3):
        np.testing.assert_array_equal(copy.column(arm, 1000), rows[:, arm])
    np.testing.assert_array_equal(copy.column(4, 1000), 0)
    later = np.pad(rows, ((0, 0), (0, 2)))
    later[200:600] = new
    for arm in range(5):
        np.testing.assert_array_equal(ring.column(arm, 1000), later[:, arm])
    assert ring.at(599, 4) == new[-1, 4]


def test_a_copy_and_room_for_an_arm_move_no_probabilities(monkeypatch) -> None:
    monitor = Monitor(200)
    ids = [str(number) for number in range(monitoring.CAPACITY)]
    arms = np.zeros(len(ids), np.int32)
    monitor.decided_many(ids, 1.0, arms, np.full((len(ids), 200), 1 / 200, np.float32))
    made, zeros = [], np.zeros
    monkeypatch.setattr(
        np, "zeros", lambda shape, *kind: made.append(np.prod(shape)) or zeros(shape, *kind)
    )
    monitor.copy()
    wider = np.full((1, 400), 1 / 400, np.float32)
    monitor.decided_many(["new"], 2.0, np.array([0], np.int32), wider)
    assert sum(made) == 400 * probability_ring.ROWS
