"""The data of a bandit's page: the newest decisions and their outcomes, by spans of time."""

from collections import deque
from itertools import starmap
from typing import Any

import numpy as np

from driftbandits import check
from driftbandits.service.engine.drift_alarm import Alarm, DriftAlarm
from driftbandits.service.engine.probability_ring import ProbabilityRing

CAPACITY = 20_000  # decisions kept
ALARMS = 20  # kept of each arm
LAST = 20  # decisions listed
MOST_POINTS = 1000
CONFIDENCE = 1.959964  # standard errors on each side of a mean hold 95%
OPEN, REWARDED, EXPIRED = range(3)
STATUSES = ["open", "rewarded", "expired"]


class Monitor:
    """The newest decisions of one bandit in rings, and a drift alarm for each of its arms.

    It trusts its caller: an id is decided once and answered or expired once. Not for several
    threads at a time.
    """

    def __init__(self, arms: int) -> None:
        self.decisions = self.rewards = self.expired = 0  # since the bandit began
        self._ids: list[str] = []
        self._places: dict[str, int] = {}  # in the rings, by id
        self._next = 0
        # Zeros take no memory before they are written, so that idle bandits are small.
        self._times = np.zeros(CAPACITY)
        self._arms = np.zeros(CAPACITY, np.int32)
        self._probabilities = ProbabilityRing(CAPACITY)
        self._statuses = np.zeros(CAPACITY, np.int8)
        self._rewards = np.zeros(CAPACITY)
        self._answered = np.zeros(CAPACITY)  # time
        self._detectors: list[DriftAlarm] = []
        self._alarms: list[deque[Alarm]] = []
        self._make_room(arms)

    def _make_room(self, arms: int) -> None:
        """Makes room for new arms."""
        new = arms - len(self._detectors)
        self._detectors += [DriftAlarm() for _ in range(new)]
        self._alarms += [deque(maxlen=ALARMS) for _ in range(new)]

    def decided_many(
        self, ids: list[str], time: float, arms: np.ndarray, probabilities: np.ndarray
    ) -> None:
        """Adds decisions of one moment, oldest first; `probabilities` is (n, slots)."""
        if probabilities.shape[1] > len(self._detectors):
            self._make_room(probabilities.shape[1])
        self.decisions += len(ids)
        begin = 0
        while begin < len(ids):  # more than one round only where the ring's end is reached
            end = min(len(ids), begin + CAPACITY - self._next)
            self._keep(ids[begin:end], time, arms[begin:end], probabilities[begin:end])
            begin = end

    def _keep(
        self, ids: list[str], time: float, arms: np.ndarray, probabilities: np.ndarray
    ) -> None:
        start, stop = self._next, self._next + len(ids)
        for old in self._ids[start:stop]:
            self._places.pop(old, None)
        self._ids[start:stop] = ids
        self._places.update(zip(ids, range(start, stop), strict=True))
        self._times[start:stop] = time
        self._arms[start:stop] = arms
        self._probabilities.write(start, probabilities)
        self._statuses[start:stop] = OPEN
        self._next = stop % CAPACITY

    def answered_many(self, ids: list[str], time: float, rewards: np.ndarray) -> None:
        """Adds rewards of one moment; those of older decisions count only for the total."""
        self.rewards += len(ids)
        places, known = self._find(ids)
        rewards = np.asarray(rewards, np.float64)[known]
        self._statuses[places] = REWARDED
        self._rewards[places] = rewards
        self._answered[places] = time
        for arm, reward in zip(self._arms[places].tolist(), rewards.tolist(), strict=True):
            if alarm := self._detectors[arm].see(time, reward):
                self._alarms[arm].append(alarm)

    def expired_many(self, ids: list[str], time: float) -> None:
        """Adds decisions whose window passed without a reward."""
        self.expired += len(ids)
        places, _ = self._find(ids)
        self._statuses[places] = EXPIRED
        self._answered[places] = time

    def _find(self, ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The places of the decisions that are still stored, and which of them are."""
        places = np.array([self._places.get(id, -1) for id in ids], np.int64)
        known = places >= 0
        return places[known], known

    def copy(self) -> "Monitor":
        """A copy for another thread."""
        other, kept = Monitor.__new__(Monitor), slice(0, len(self._ids))
        for name, value in vars(self).items():
            setattr(other, name, value[kept].copy() if isinstance(value, np.ndarray) else value)
        other._ids, other._detectors = list(self._ids), list(self._detectors)
        other._alarms = [deque(alarms, ALARMS) for alarms in self._alarms]
        other._probabilities = self._probabilities.copy()
        other._places = {}  # of no use for looking
        return other

    def series(self, names: list[str], points: int, now: float, open_: int) -> dict[str, Any]:
        """The `/series` answer, for arms with these names, in `points` equal spans of time."""
        check.integer(points=points, at_most=MOST_POINTS)
        self._make_room(len(names))
        kept = slice(0, len(self._ids))
        times, arms = self._times[kept], self._arms[kept]
        answered = np.flatnonzero(self._statuses[kept] == REWARDED)
        edges = spans(times, self._answered[answered], points, now)
        buckets = bucket_of(times, edges)
        decisions = np.bincount(buckets, minlength=points)
        reward_buckets = bucket_of(self._answered[answered], edges)
        rewards, reward_arms = self._rewards[answered], arms[answered]
        shares, probabilities, arm_rewards = {}, {}, {}
        for arm, name in enumerate(names):
            shares[name] = means(buckets, arms == arm, decisions)
            probabilities[name] = means(
                buckets, self._probabilities.column(arm, len(self._ids)), decisions
            )
            own = reward_arms == arm
            arm_rewards[name] = band(reward_buckets[own], rewards[own], points)
        return {
            "arms": list(names),
            "from": float(edges[0]),
            "to": float(edges[-1]),
            "times": edges[1:].tolist(),
            "decisions": decisions.tolist(),
            "share": shares,
            "probability": probabilities,
            "reward": band(reward_buckets, rewards, points),
            "arm_reward": arm_rewards,
            "open": open_,
            "expired": self.expired,
            "decisions_total": self.decisions,
            "rewards_total": self.rewards,
            "alarms": {
                name: [alarm._asdict() for alarm in alarms]
                for name, alarms in zip(names, self._alarms, strict=False)
            },
            "last": self._last(names),
        }

    def _last(self, names: list[str]) -> list[dict[str, Any]]:
        """The newest decisions, newest first."""
        count = min(LAST, len(self._ids))
        places = [(self._next - 1 - age) % CAPACITY for age in range(count)]
        return [self._row(place, names) for place in places]

    def _row(self, place: int, names: list[str]) -> dict[str, Any]:
        arm, status = int(self._arms[place]), int(self._statuses[place])
        return {
            "id": self._ids[place],
            "time": float(self._times[place]),
            "arm": names[arm],
            "probability": self._probabilities.at(place, arm),
            "reward": float(self._rewards[place]) if status == REWARDED else None,
            "status": STATUSES[status],
        }


def spans(times: np.ndarray, answered: np.ndarray, points: int, now: float) -> np.ndarray:
    """Borders of equal spans from the oldest decision to now, or to the latest date."""
    to = max(now, times.max(initial=now), answered.max(initial=now))
    since = times.min(initial=to)
    return np.linspace(since if since < to else to - 1, to, points + 1)


def bucket_of(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The span of each time; a border belongs to the span that begins there."""
    points = len(edges) - 1
    return np.clip(np.searchsorted(edges, times, side="right") - 1, 0, points - 1)


def means(buckets: np.ndarray, values: np.ndarray, counts: np.ndarray) -> list[float | None]:
    """Mean of the values in each bucket, None where there are none."""
    totals = np.bincount(buckets, values, minlength=len(counts))
    return nullable(totals / np.maximum(counts, 1), counts > 0)


def band(buckets: np.ndarray, rewards: np.ndarray, points: int) -> dict[str, list[Any]]:
    """Mean reward of each bucket with its 95% normal interval; one reward alone has none."""
    counts = np.bincount(buckets, minlength=points)
    mean = np.bincount(buckets, rewards, minlength=points) / np.maximum(counts, 1)
    squares = np.bincount(buckets, (rewards - mean[buckets]) ** 2, minlength=points)
    error = np.sqrt(squares / np.maximum(counts - 1, 1) / np.maximum(counts, 1))
    return {
        "mean": nullable(mean, counts > 0),
        "low": nullable(mean - CONFIDENCE * error, counts > 1),
        "high": nullable(mean + CONFIDENCE * error, counts > 1),
        "count": counts.tolist(),
    }


def nullable(values: np.ndarray, there: np.ndarray) -> list[float | None]:
    def either(value: float, is_there: bool) -> float | None:
        return value if is_there else None

    return list(starmap(either, zip(values.tolist(), there.tolist(), strict=True)))
