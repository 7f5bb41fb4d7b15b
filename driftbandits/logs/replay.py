"""Replays logged events, which brings the decision book to the state that it had."""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.setting_checks import checked_settings
from driftbandits.agents.settings import AgentSettings, settings_of
from driftbandits.logs.corrections import TAKEN_BACK, Corrections, corrected, last_seq
from driftbandits.logs.events import (
    changed_settings,
    features_of,
    policy_input,
    probability_table,
)
from driftbandits.service.store.records import Event

NONE: Corrections = MappingProxyType({})
ARM_CHANGES: dict[str, Callable[[DecisionBook, str, Any], None]] = {  # with features, or None
    "arm_added": DecisionBook.add_arm,
    "arm_retired": lambda book, name, _: book.retire_arm(name),
    "arm_restored": lambda book, name, _: book.restore_arm(name),
    "features_set": DecisionBook.set_features,
}


class EventGroup(NamedTuple):
    """Consecutive events of a log with the same kind and time."""

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


def stored_book(config: dict[str, Any], remember: int, folder: Path | None = None) -> DecisionBook:
    """The same, of a bandit in the database, which an older version may have created."""
    return new_book({**config, "arms": arms_of_config(config)}, remember, folder)


def arms_of_config(config: dict[str, Any]) -> Any:
    """The arms of a stored bandit. In 0.15.0 true and false were numbers among plain features."""
    arms = config["arms"]
    if not isinstance(arms, Mapping) or isinstance(config.get("features"), Mapping):
        return arms
    return {name: without_flags(each) for name, each in arms.items()}


def without_flags(features: Any) -> Any:
    if not isinstance(features, Mapping):
        return features
    return {
        name: float(value) if isinstance(value, bool) else value for name, value in features.items()
    }


def settings_of_book(config: dict[str, Any], remember: int) -> AgentSettings:
    return checked_settings(settings_of(config)._replace(remember=remember))


class RefusedRewardError(Exception):
    """With a correction, the policy cannot learn this reward."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id  # of the decision


def replay(
    book: DecisionBook,
    events: list[Event],
    corrections: Corrections = NONE,
    *,
    whole: bool = False,
) -> int:
    """Replays events; returns how many decisions came out differently.

    Those before the last correction are not counted: they were made with wrong rewards.
    With `whole`, a reward that the policy refuses is a RefusedRewardError.
    """
    mismatches, counted_from = 0, last_seq(corrections)
    for group in grouped([corrected(event, corrections) for event in events]):
        book.set_clock(group.time)
        if group.kind == "decision":
            differing = decide_again(book, group.events)
            mismatches += sum(event.seq > counted_from for event in differing)
        elif group.kind == "reward":
            refused = book.settle(group.ids, [event.reward or 0.0 for event in group.events])
            if refused and whole:
                raise RefusedRewardError(next(id for id in group.ids if id in refused))
        elif group.kind == "expiry":
            book.settle(group.ids)
        elif group.kind == TAKEN_BACK:
            book.forget(group.ids)
        elif group.kind == "settings_changed":
            for event in group.events:
                book.set_settings(book.settings._replace(**changed_settings(event)))
        elif group.kind != "correction":
            for event in group.events:
                ARM_CHANGES[group.kind](book, event.id, features_of(event))
    return mismatches


def decide_again(book: DecisionBook, events: list[Event]) -> list[Event]:
    """Repeats decisions as they were; returns those that would come out differently now."""
    arms = np.array([event.arm or 0 for event in events], np.int32)
    inputs = {event.id: policy_input(event, book) for event in events}
    different = book.decide_again(inputs, arms, probability_table(events))
    return [events[place] for place in different]
