"""Logged events, gone through again: the decision book comes to the very state that it had."""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from driftbandits.agents import checks
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.settings import AgentSettings, settings_of
from driftbandits.logs.corrections import TAKEN_BACK, Corrections, corrected, last_seq
from driftbandits.logs.events import policy_input, probability_table
from driftbandits.service.store.records import Event

NONE: Corrections = MappingProxyType({})
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


def new_book(config: dict[str, Any], remember: int, folder: Path | None = None) -> DecisionBook:
    """The book of a bandit before its first event."""
    return DecisionBook(config["arms"], settings_of_book(config, remember), folder)


def settings_of_book(config: dict[str, Any], remember: int) -> AgentSettings:
    return checks.settings(settings_of(config)._replace(remember=remember))


def replay(book: DecisionBook, events: list[Event], corrections: Corrections = NONE) -> int:
    """Goes through events; gives how many of the decisions came out differently.

    Those before the last correction are not counted: they were made with wrong rewards in mind.
    """
    mismatches, counted_from = 0, last_seq(corrections)
    for group in grouped([corrected(event, corrections) for event in events]):
        book.set_clock(group.time)
        if group.kind == "decision":
            differing = decide_again(book, group.events)
            mismatches += sum(event.seq > counted_from for event in differing)
        elif group.kind == "reward":
            book.settle(group.ids, [event.reward or 0.0 for event in group.events])
        elif group.kind == "expiry":
            book.settle(group.ids)
        elif group.kind == TAKEN_BACK:
            book.forget(group.ids)
        elif group.kind != "correction":
            for name in group.ids:
                ARM_CHANGES[group.kind](book, name)
    return mismatches


def decide_again(book: DecisionBook, events: list[Event]) -> list[Event]:
    """What was answered stands, also where it would be decided otherwise now: those are given."""
    slots = book.arms.slots
    arms = [event.arm or 0 for event in events]
    inputs = {event.id: policy_input(event, slots) for event in events}
    different = book.decide_again(inputs, arms, probability_table(events))
    return [events[place] for place in different]
