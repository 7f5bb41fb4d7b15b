"""What the engine is asked for, and in which order it looks at what came together."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from driftbandits.agents.requests import Asked
from driftbandits.service.live import LiveBandit


class Decide(NamedTuple):
    requests: Sequence[Asked]


class Reward(NamedTuple):
    pairs: list[tuple[str, float]]


class ChangeArm(NamedTuple):
    """Add, retire or restore an arm, then look."""

    kind: str
    name: str
    then: Callable[[LiveBandit], Any]


class Delete(NamedTuple):
    """The bandit, its log and its snapshots."""


class Look(NamedTuple):
    """At a bandit, with a function that changes nothing."""

    at: Callable[[LiveBandit], Any]


Wish = Decide | Reward | ChangeArm | Delete | Look


class Call(NamedTuple):
    bandit: str
    wish: Wish
    answer: asyncio.Future[Any]

    @property
    def size(self) -> int:
        """Events that it makes, about."""
        if isinstance(self.wish, Decide):
            return len(self.wish.requests)
        return len(self.wish.pairs) if isinstance(self.wish, Reward) else 1


Reply = tuple[Call, Any]


def is_quick(wish: Wish) -> bool:
    """Decisions and rewards need not wait until what was answered before is in the log."""
    return isinstance(wish, Decide | Reward)


def until_deleted(calls: list[Call]) -> tuple[list[Call], list[Call]]:
    """Those before the first wish to delete, and the rest."""
    for place, call in enumerate(calls):
        if isinstance(call.wish, Delete):
            return calls[:place], calls[place:]
    return calls, []


def stretches(calls: list[Call]) -> list[list[Call]]:
    """Calls of one kind together, rewards before decisions; a change of arms keeps its place."""
    parts: list[list[Call]] = []
    rewards: list[Call] = []
    decisions: list[Call] = []
    for call in calls:
        if isinstance(call.wish, Reward):
            rewards.append(call)
        elif isinstance(call.wish, Decide):
            decisions.append(call)
        else:
            parts += [rewards, decisions, [call]]
            rewards, decisions = [], []
    return [part for part in [*parts, rewards, decisions] if part]


def hand_out(replies: list[Reply]) -> None:
    for call, reply in replies:
        if call.answer.done():  # its caller has gone
            continue
        if isinstance(reply, Exception):
            call.answer.set_exception(reply)
        else:
            call.answer.set_result(reply)
