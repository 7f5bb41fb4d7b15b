"""Checks of requests beyond the types of their fields."""

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.service import errors
from driftbandits.service.http import messages as m

MOST_DECISIONS = 1000  # of one request
MOST_OWN_ARMS = 10_000  # that the decisions of one request bring


def checked(given: list[m.NewDecision]) -> list[m.NewDecision]:
    for each in given:
        if each.id is not None:
            checks.name("id", each.id)
    if len(given) > 1 and sum(each.k or 1 for each in given) > MOST_DECISIONS:
        raise errors.bad_value(f"the sum of all k must be at most {MOST_DECISIONS}")
    own = sum(len(each.arms) for each in given if each.arms)
    if own > MOST_OWN_ARMS:
        rule = f"at most {MOST_OWN_ARMS} in all decisions of a request"
        raise errors.bad_value(f"arms must be {rule}, got {own}")
    return given


def features_of(body: m.NewBandit) -> list[str] | dict[str, str]:
    """The features of a new bandit's arms: if they are not given, those of its first arm."""
    return list(checks.feature_names(body.arms)) if body.features is None else body.features


def pair(body: m.NewReward) -> tuple[str, float]:
    """A pair of id and reward; length and size were checked when it was decoded."""
    id = body.id if body.id.isprintable() else checks.name("id", body.id)
    return id, body.reward + 0.0  # no negative zero


def points_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1000:
        check.fail("points", "a whole number of 1 to 1000", text)
    return int(text[:9])
