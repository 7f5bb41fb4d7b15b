"""Converts decisions between arrays and event bytes."""

import json
from typing import Any

import numpy as np

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


def policy_input(event: Event, slots: int) -> PolicyInput:
    """What the policy saw; slots that were added later were not available."""
    available = np.zeros(slots, bool)
    logged = np.frombuffer(event.available or b"", bool)
    available[: logged.size] = logged
    return PolicyInput(np.frombuffer(event.context or b"", FLOAT), available)


def settings_event(seq: int, time: float, changes: dict[str, Any]) -> Event:
    """An event for settings that change from now on."""
    names, values = ", ".join(changes), json.dumps(changes).encode()
    return Event(seq, "settings_changed", time, names, context=values)


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
