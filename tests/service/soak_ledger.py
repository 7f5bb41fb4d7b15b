"""What the clients of a soak were told, and whether the log says the same."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandits.service.store.records import BanditRow, Event
from driftbandits.service.store.store import Store

NEWEST = 20_000  # decisions of each bandit that its page shows
MOST_SHOWN = 5  # problems of one kind


class Answered(NamedTuple):
    """A decision as a client was told."""

    arm: str
    probability: float
    probabilities: bytes  # float32 of all arms of the moment


class Logged(NamedTuple):
    """A decision as it is in the log."""

    arm: str
    probability: float
    status: str  # open, rewarded or expired
    reward: float | None


@dataclass
class Known:
    """A bandit as its clients know it; ids are decided and rewarded by one client each."""

    name: str
    body: dict[str, Any]  # that it was created with
    decisions: dict[str, Answered] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)  # as a client was told
    corrections: dict[str, float | None] = field(default_factory=dict)  # the last of each id
    unanswered: set[str] = field(default_factory=set)  # ids whose client left before the answer
    retired: set[str] = field(default_factory=set)
    arms: list[str] = field(default_factory=list)
    open: dict[int, list[str]] = field(default_factory=dict)  # ids that each client left open
    settled: dict[int, list[str]] = field(default_factory=dict)  # ids that each client rewarded
    changing_arms: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0  # clients that are asking it
    closed: bool = False  # it is about to be deleted

    def copy(self) -> "Known":
        """What was acknowledged until now: later lines of the log are more than this."""
        rewards, expired = dict(self.rewards), set(self.expired)
        return Known(self.name, self.body, dict(self.decisions), rewards, expired)


class Ledger:
    """All bandits, and everything that was answered."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bandits: dict[str, Known] = {}
        self.answers: Counter[tuple[str, str]] = Counter()  # by kind of request and status
        self.problems: list[str] = []
        self.seconds: list[float] = []  # that single decisions took
        self.totals: Counter[str] = Counter()  # of bandits that were deleted

    def add(self, known: Known) -> None:
        with self.lock:
            self.bandits[known.name] = known

    def forget(self, known: Known) -> None:
        """A bandit that was deleted; its name is free."""
        with self.lock:
            del self.bandits[known.name]
            self.totals.update(totals_of(known), deleted=1)

    @contextmanager
    def using(self, choose: Any) -> Iterator[Known | None]:
        """One of the bandits that are not about to be deleted."""
        with self.lock:
            known = choose([known for known in self.bandits.values() if not known.closed])
            if known:
                known.users += 1
        try:
            yield known
        finally:
            if known:
                with self.lock:
                    known.users -= 1

    def note(self, kind: str, status: int | str) -> None:
        with self.lock:
            self.answers[kind, str(status)] += 1

    def acknowledged(self) -> Counter[str]:
        """How much of each kind, ever."""
        with self.lock:
            return sum((totals_of(known) for known in self.bandits.values()), self.totals)

    def kept(self) -> tuple[int, int]:
        """Decisions that workers keep for the pages of their bandits, and those that are open."""
        with self.lock:
            kept = sum(min(len(each.decisions), NEWEST) for each in self.bandits.values())
            return kept, sum(map(waiting_of, self.bandits.values()))

    def complain(self, *problems: str) -> None:
        self.problems.extend(problems)


def waiting_of(known: Known) -> int:
    """With a window, few of them wait."""
    settled = len(known.rewards) + len(known.expired)
    return 0 if "window" in known.body else len(known.decisions) - settled


def totals_of(known: Known) -> Counter[str]:
    return Counter(
        decisions=len(known.decisions),
        rewards=len(known.rewards),
        corrections=len(known.corrections),
    )


def compare(known: Known, logged: dict[str, Logged], *, exactly: bool) -> list[str]:
    """What is missing or different; if `exactly`, also what is too much."""
    problems: dict[str, list[object]] = {}

    def found(problem: str, *about: object) -> None:
        problems.setdefault(problem, []).append(about)

    for id, told in known.decisions.items():
        row = logged.get(id)
        if row is None:
            found("lost decision", id)
        elif (row.arm, row.probability) != (told.arm, told.probability):
            found("another decision", id, told[:2], row[:2])
    for id, reward in known.rewards.items():
        row = logged.get(id)
        if row is None or row.status != "rewarded" or row.reward != reward:
            found("lost reward", id, reward, row)
    for id in known.expired:
        if id not in logged or logged[id].status != "expired":
            found("lost expiry", id, logged.get(id))
    if exactly:
        rewarded = {id for id, row in logged.items() if row.status == "rewarded"}
        for id in set(logged) - set(known.decisions) - known.unanswered:
            found("nobody's decision", id)
        for id in rewarded - set(known.rewards):
            found("nobody's reward", id, logged[id])
    return [f"{known.name}: {len(those)} x {problem}: {those[:MOST_SHOWN]}"
            for problem, those in problems.items()]  # fmt: skip


def logged_in(table: pl.DataFrame) -> dict[str, Logged]:
    """From an export."""
    rows = table.select("id", "arm", "probability", "status", "reward").iter_rows()
    return {id: Logged(*rest) for id, *rest in rows}


def compare_corrections(known: Known, table: pl.DataFrame) -> list[str]:
    """Those in an export of a bandit that nobody asks now."""
    corrected = table.filter(pl.col("corrected_at").is_not_null())
    return differing_corrections(
        known, dict(corrected.select("id", "corrected_reward").iter_rows())
    )


def differing_corrections(known: Known, logged: dict[str, float | None]) -> list[str]:
    differing = {id for id, _ in set(logged.items()) ^ set(known.corrections.items())}
    shown = sorted(differing)[:MOST_SHOWN]
    return [f"{known.name}: other corrections: {shown}"] if differing else []


def compare_events(known: Known, events: list[Event]) -> list[str]:
    """The whole log of a bandit that nobody asks now, with everything that was ever told of it."""
    problems = []
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        problems.append(f"{known.name}: the log has gaps")
    decided = Counter(event.id for event in events if event.kind == "decision")
    settled = Counter(event.id for event in events if event.kind in ("reward", "expiry"))
    if {*decided.values(), *settled.values()} - {1}:
        problems.append(f"{known.name}: an id was decided or settled twice")
    corrections = {event.id: event.reward for event in events if event.kind == "correction"}
    problems += differing_corrections(known, corrections)
    for event in events:
        answered = known.decisions.get(event.id) if event.kind == "decision" else None
        if answered and answered.probabilities != event.probabilities:
            problems.append(f"{known.name}: other probabilities of {event.id}")
    arms = [*known.body["arms"], *(event.id for event in events if event.kind == "arm_added")]
    if arms != known.arms:
        problems.append(f"{known.name}: arms {arms} in place of {known.arms}")
    return problems + compare(known, from_events(events, arms), exactly=True)


def from_events(events: Iterable[Event], arms: list[str]) -> dict[str, Logged]:
    found: dict[str, Logged] = {}
    for event in events:
        if event.kind == "decision":
            assert event.arm is not None
            assert event.probability is not None
            found[event.id] = Logged(arms[event.arm], event.probability, "open", None)
        elif event.kind in ("reward", "expiry"):
            status = "rewarded" if event.kind == "reward" else "expired"
            found[event.id] = found[event.id]._replace(status=status, reward=event.reward)
    return found


def all_events(store: Store, row: BanditRow) -> list[Event]:
    events: list[Event] = []
    while page := store.events(row.id, events[-1].seq if events else 0):
        events += page
    return events


def as_bytes(probabilities: dict[str, float]) -> bytes:
    return np.array(list(probabilities.values()), "<f4").tobytes()
