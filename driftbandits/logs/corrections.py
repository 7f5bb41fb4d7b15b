"""Rewards that were logged and later corrected or taken back: what the log says in the end."""

from collections.abc import Mapping

from driftbandits.service.store.records import Event, LoggedDecision

OUTCOMES = ("reward", "expiry")
TAKEN_BACK = "taken_back"  # an outcome from which nothing is learned

Corrections = Mapping[str, Event]  # by id, the last one of each


def last_seq(corrections: Corrections) -> int:
    """The last correction; up to here the bandit may have decided with wrong rewards."""
    return max((event.seq for event in corrections.values()), default=0)


def corrected(event: Event, corrections: Corrections) -> Event:
    """An event as it should have been."""
    correction = corrections.get(event.id) if event.kind in OUTCOMES else None
    if correction is None:
        return event
    kind = TAKEN_BACK if correction.reward is None else "reward"
    return event._replace(kind=kind, reward=correction.reward)


def as_corrected(logged: LoggedDecision, corrections: Corrections) -> LoggedDecision:
    """A decision with the outcome that it should have had."""
    outcome = logged.outcome
    return logged if outcome is None else logged._replace(outcome=corrected(outcome, corrections))
