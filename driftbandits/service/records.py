"""What the store keeps, as the rest of the service sees it."""

from typing import Any, NamedTuple


class Event(NamedTuple):
    """One line of a bandit's log."""

    seq: int  # 1, 2, 3, ... within the bandit, no gaps
    kind: str  # "decision", "reward", "expiry", "arm_added", "arm_retired", "arm_restored"
    time: float  # unix seconds
    id: str  # of the decision; the arm's name for arm_*
    arm: int | None = None  # decision: index of the arm
    probability: float | None = None  # decision
    law: bytes | None = None  # decision: float32 of all arms
    context: bytes | None = None  # decision: float32
    available: bytes | None = None  # decision: bool of all arms
    reward: float | None = None  # reward, or expiry with a default reward


class Lease(NamedTuple):
    """The right to write a bandit's log, until somebody else claims it."""

    bandit: int  # id of the bandit
    epoch: int  # grows with every change of owner: the fencing token


class BanditRow(NamedTuple):
    """A bandit and who looks after it."""

    id: int
    name: str
    config: dict[str, Any]
    created: float  # unix seconds
    owner: str | None  # the worker that claimed it last and has not released it
    url: str | None  # of that worker
    alive: bool  # the lease has not run out, by the database's clock


class KeyRow(NamedTuple):
    """A key to the service; the key itself is nowhere, only its digest."""

    digest: str
    role: str
    label: str
    created: float  # unix seconds


Told = tuple[Event, Event | None]  # a decision and its outcome, None while it is open
Found = dict[str, tuple[Event | None, Event | None]]  # decisions and outcomes, by id
Entry = tuple[Lease, int, list[Event]]  # who writes, the last seq before, what is new
