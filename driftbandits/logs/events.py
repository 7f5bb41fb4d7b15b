"""Converts decisions between arrays and event bytes."""

import json
from typing import Any

import numpy as np

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.requests import PolicyInput
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.service.store.records import Event, LoggedDecision

FLOAT = np.dtype("<f4")


def probabilities_of(event: Event) -> np.ndarray:
    """(arms of the moment,) float32"""
    return np.frombuffer(event.probabilities or b"", FLOAT)


def probability_table(events: list[Event]) -> np.ndarray:
    """Probabilities, (decisions, arms) float32; an arm that was added later had 0 before."""
    rows = [event.probabilities or b"" for event in events]
    longest = max(map(len, rows))
    padded = b"".join(row.ljust(longest, b"\0") for row in rows)
    return np.frombuffer(padded, FLOAT).reshape(len(rows), -1)


def input_bytes(book: DecisionBook, request: PolicyInput) -> bytes:
    """What a request brings: float32 for numbers, JSON where there are types or features."""
    if not book.logs_values:
        numbers: np.ndarray = request.context
        return numbers.astype(FLOAT).tobytes() if numbers.size else b""
    found = {"context": book.contexts.to_json(request.context)}
    if request.features:
        names, vectors = book.arms.names, book.features.vectors
        own = request.features.items()
        found["arms"] = {names[slot]: vectors.to_json(each) for slot, each in own}
    return json_bytes(found)


def policy_input(event: Event, book: DecisionBook) -> PolicyInput:
    """What the policy saw; slots that were added later were not available."""
    available = np.zeros(book.arms.slots, bool)
    logged = np.frombuffer(event.available or b"", bool)
    available[: logged.size] = logged
    if not book.logs_values:
        numbers = np.frombuffer(event.context or b"", FLOAT)
        return PolicyInput(numbers, available, place=event.place)
    found = json.loads(event.context or b"{}")
    read = book.features.vectors.from_json
    own = {book.arms.slot(name): read(each) for name, each in found.get("arms", {}).items()}
    context = book.contexts.from_json(found["context"])
    return PolicyInput(context, available, own or None, place=event.place)


def arm_event(seq: int, kind: str, time: float, name: str, features: Any) -> Event:
    """An event for a change of an arm, with features as JSON knows them, or None."""
    stored = None if features is None else json_bytes(features)
    return Event(seq, kind, time, name, context=stored)


def features_of(event: Event) -> Any:
    return None if event.context is None else json.loads(event.context)


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def settings_event(seq: int, time: float, changes: dict[str, Any]) -> Event:
    """An event for settings that change from now on."""
    return Event(seq, "settings_changed", time, ", ".join(changes), context=json_bytes(changes))


def changed_settings(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.context or b"{}")
    return found


def past_decision(logged: LoggedDecision) -> PastDecision:
    """A past decision; without an outcome, it waits at another worker."""
    decision, outcome = logged
    return PastDecision(
        arm=decision.arm or 0,
        source=probabilities_of(decision),
        reward=None if outcome is None else outcome.reward,
        expired=outcome is not None and outcome.kind == "expiry",
        elsewhere=outcome is None,
    )
