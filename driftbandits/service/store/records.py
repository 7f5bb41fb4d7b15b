"""The records of the store, as the rest of the service sees them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

KINDS = (
    "decision",
    "reward",
    "expiry",
    "correction",
    "arm_added",
    "arm_retired",
    "arm_restored",
    "features_set",
    "settings_changed",
)


class Event(NamedTuple):
    """One line of a bandit's log."""

    seq: int  # 1, 2, 3, ... within the bandit, no gaps
    kind: str  # one of KINDS
    time: float  # unix seconds
    id: str  # of the decision; the arm's name; which ones for settings_changed
    arm: int | None = None  # decision: index of the arm
    probability: float | None = None  # decision
    probabilities: bytes | None = None  # decision: float32 of all arms; the column is `law`
    context: bytes | None = None  # decision: float32, or JSON; features or settings: JSON
    available: bytes | None = None  # decision: bool of all arms
    reward: float | None = None  # reward, or expiry with a default reward, or correction
    place: int | None = None  # decision: its place on a slate, whose id is that before `.place`

    @property
    def slate(self) -> str | None:
        return None if self.place is None else self.id.removesuffix(f".{self.place}")


class Lease(NamedTuple):
    """The right to write a bandit's log, until somebody else claims it."""

    bandit: int  # id of the bandit
    epoch: int  # grows with every change of owner: the fencing token


class BanditRow(NamedTuple):
    """A bandit and the worker that owns it."""

    id: int
    name: str
    config: dict[str, Any]
    created: float  # unix seconds
    owner: str | None  # the worker that claimed it last and has not released it
    url: str | None  # of that worker
    alive: bool  # that worker's lease has not run out, by the database's clock


class KeyRow(NamedTuple):
    """A key of the service; only its digest is stored."""

    digest: str
    role: str
    label: str
    created: float  # unix seconds


class LoggedDecision(NamedTuple):
    """A decision and its outcome."""

    decision: Event
    outcome: Event | None  # its reward or its expiry; None while it is open


class Entry(NamedTuple):
    """New events of one bandit, to be appended to its log."""

    lease: Lease
    last_seq: int  # before these
    events: list[Event]


class Snapshot(NamedTuple):
    """What a bandit has learned, so that its log need not be replayed from the start."""

    lease: Lease
    seq: int  # of the last event that it has seen
    blob: bytes


class Segment(NamedTuple):
    """Some of the open decisions of snapshots."""

    number: int
    blob: bytes


Found = dict[str, LoggedDecision]  # by id


def as_bandit(row: Sequence[Any]) -> BanditRow:
    id, name, config, created, owner, url, alive = row
    return BanditRow(id, name, json.loads(config), created, owner, url, bool(alive))
