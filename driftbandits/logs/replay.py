"""Logged events, gone through again: the decision book comes to the very state that it had."""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from driftbandits.agents import checks
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.settings import AgentSettings
from driftbandits.logs.events import policy_input, probabilities_of
from driftbandits.service.store.records import Event

ARM_CHANGES: dict[str, Callable[[DecisionBook, str], None]] = {
    "arm_added": DecisionBook.add_arm,
    "arm_retired": DecisionBook.retire_arm,
    "arm_restored": DecisionBook.restore_arm,
}


class EventGroup(NamedTuple):
    """Neighbours in a log, of one kind and one time."""

    kind: str
    time: float
    events: list[Event]

    @property
    def ids(self) -> list[str]:
        return [event.id for event in self.events]


def grouped(events: list[Event]) -> Iterator[EventGroup]:
    for (kind, time), group in groupby(events, attrgetter("kind", "time")):
        yield EventGroup(kind, time, list(group))


def new_book(config: dict[str, Any], remember: int) -> DecisionBook:
    """The book of a bandit before its first event."""
    return DecisionBook(config["arms"], settings_of(config, remember))


def settings_of(config: dict[str, Any], remember: int) -> AgentSettings:
    settings = {key: value for key, value in config.items() if key != "arms"}
    return checks.settings(AgentSettings(**settings, remember=remember))


def replay(book: DecisionBook, events: list[Event]) -> int:
    """Goes through events; gives how many of the decisions came out differently."""
    mismatches = 0
    for group in grouped(events):
        book.set_clock(group.time)
        if group.kind == "decision":
            slots = book.arms.slots
            book.decide({event.id: policy_input(event, slots) for event in group.events})
            mismatches += sum(correct(book, event) for event in group.events)
        elif group.kind == "reward":
            book.settle(group.ids, [event.reward or 0.0 for event in group.events])
        elif group.kind == "expiry":
            book.settle(group.ids)
        else:
            for name in group.ids:
                ARM_CHANGES[group.kind](book, name)
    return mismatches


def correct(book: DecisionBook, event: Event) -> bool:
    """What was answered stands, also where another kind of machine would decide otherwise."""
    made = book.open.waiting[event.id]
    if made.arm == event.arm:
        return False
    logged = made._replace(arm=event.arm or 0, probabilities=probabilities_of(event).copy())
    book.open.waiting[event.id] = logged
    return True
