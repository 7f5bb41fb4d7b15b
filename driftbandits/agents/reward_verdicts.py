"""What happens to a reward, by the state of its decision."""

from typing import Literal, NamedTuple

import numpy as np

from driftbandits.agents.probabilities import Probabilities, computed
from driftbandits.agents.ranges import between
from driftbandits.agents.requests import place_ids
from driftbandits.agents.settings import AgentSettings

RewardStatus = Literal[
    "learned",  # its decision was open
    "duplicate",  # its decision has had this reward
    "contradictory",  # its decision has had another reward
    "expired",  # its decision waits no more: the window has passed, or too many waited
    "unknown",  # no such decision is known
    "elsewhere",  # its decision is known, but waits in the book of another worker
    "out_of_range",  # the bandit was promised other rewards
    "diverging",  # what the policy knows would no longer be numbers
]


class RewardVerdict(NamedTuple):
    """What happens to one reward."""

    status: RewardStatus
    before: float | None = None  # the reward that this one contradicts


# Made once, as most rewards are learned, and thousands of them in a second.
LEARNED, DUPLICATE = RewardVerdict("learned"), RewardVerdict("duplicate")
EXPIRED, UNKNOWN, ELSEWHERE = (
    RewardVerdict("expired"),
    RewardVerdict("unknown"),
    RewardVerdict("elsewhere"),
)
OUT_OF_RANGE, DIVERGING = RewardVerdict("out_of_range"), RewardVerdict("diverging")


class PastDecision(NamedTuple):
    """A decision that no longer waits for its reward, or waits elsewhere."""

    arm: int
    source: Probabilities
    reward: float | None  # what was learned; None where it was forgotten
    expired: bool
    elsewhere: bool = False  # it waits, but in the book of another worker

    @property
    def probabilities(self) -> np.ndarray:
        """(arms of the moment,) float32"""
        return computed(self.source)


def verdict_on(reward: float, past: PastDecision | None) -> RewardVerdict:
    """Judges a reward whose decision is not open."""
    if past is None:
        return UNKNOWN
    if past.elsewhere:
        return ELSEWHERE
    return EXPIRED if past.expired else repeated(reward, past.reward)


def reason_against(id: str, reward: float, verdict: RewardVerdict, settings: AgentSettings) -> str:
    """Why a reward is refused, in the words of the agent and of the service."""
    if verdict.status == "out_of_range":
        return f"reward must be {between(*settings.reward_range)} (reward_range), got {reward!r}"
    if verdict.status == "diverging":
        return (
            f"reward must be one that {settings.policy} can learn, got {reward!r}: "
            f"with it, what the policy knows would no longer be finite numbers"
        )
    if verdict.status == "contradictory" and verdict.before is None:
        return f"the reward of decision {id!r} was taken back, got {reward!r}"
    if verdict.status == "contradictory":
        return f"decision {id!r} already has the reward {verdict.before!r}, got {reward!r}"
    if verdict.status == "expired":
        return f"decision {id!r} has expired: its window passed, or too many decisions were open"
    return f"there is no decision with the id {id!r}"


def slate_hint(id: str) -> str:
    """What follows the reason where an unknown id is that of a slate."""
    return f"; {id!r} is a slate, so use the ids of its places: {place_ids(id, 1)[0]!r}, ..."


def repeated(reward: float, before: float | None) -> RewardVerdict:
    """Judges a reward whose decision already has one."""
    return DUPLICATE if reward == before else RewardVerdict("contradictory", before)
