"""Checks of requests beyond the types of their fields."""

from driftbandits.agents import checks
from driftbandits.service import errors
from driftbandits.service.http import messages as m


def checked(given: list[m.NewDecision]) -> list[m.NewDecision]:
    for each in given:
        if each.id is not None:
            checks.name("id", each.id)
    return given


def pair(body: m.NewReward) -> tuple[str, float]:
    """A pair of id and reward; length and size were checked when it was decoded."""
    id = body.id if body.id.isprintable() else checks.name("id", body.id)
    return id, body.reward + 0.0  # no negative zero


def points_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1000:
        raise errors.bad_value(f"points must be a whole number of 1 to 1000, got {text!r}")
    return int(text[:9])
