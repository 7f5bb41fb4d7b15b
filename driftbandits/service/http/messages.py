"""The JSON messages of the API: requests, answers and their bounds."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from driftbandits.agents.checks import LARGEST_NUMBER
from driftbandits.agents.settings import MOST_OPEN
from driftbandits.service.engine.made_decisions import MadeDecision

Name = Annotated[str, Meta(min_length=1, max_length=200)]
BanditName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^/]+$")]
Number = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Numbers = Annotated[list[Number], Meta(max_length=1000)]
Names = Annotated[list[Name], Meta(min_length=1, max_length=1000)]
Range = tuple[Number, Number]
OutOfRange = Literal["refuse", "clip", "accept"]


class NewBandit(Struct, forbid_unknown_fields=True):
    """A bandit to be created."""

    name: BanditName
    arms: Names
    context: Annotated[list[Name], Meta(max_length=1000)] = []
    policy: Annotated[str, Meta(min_length=1, max_length=1000)] = "tracker"
    seed: Annotated[int, Meta(ge=0, lt=2**31)] | None = None
    window: Annotated[float, Meta(gt=0, le=1e9)] | None = 86400.0
    default_reward: Number | None = None
    reward_range: Range = (0.0, 1.0)
    context_ranges: dict[str, Range] = {}
    out_of_range: OutOfRange = "refuse"
    noise: Annotated[float, Meta(gt=0, le=LARGEST_NUMBER)] = 0.5
    horizon: Annotated[int, Meta(ge=1, lt=2**31)] | None = None
    max_open: Annotated[int, Meta(ge=1000, le=MOST_OPEN)] = 100_000


class BanditChanges(Struct, forbid_unknown_fields=True):
    """Settings of a bandit that are to be other ones from now on."""

    out_of_range: OutOfRange | UnsetType = UNSET
    context_ranges: dict[str, Range] | UnsetType = UNSET


class Arm(Struct):
    name: str
    retired: bool


class Bandit(Struct):
    """A bandit, as it is now."""

    name: str
    policy: str
    context: list[str]
    arms: list[Arm]
    seed: int
    window: float | None
    default_reward: float | None
    reward_range: tuple[float, float]
    context_ranges: dict[str, tuple[float, float]]
    out_of_range: str
    noise: float
    horizon: int | None
    max_open: int
    created: float
    decisions: int | None  # None where no worker can be asked now
    rewards: int | None
    expired: int | None
    open: int | None
    worker: str


class Bandits(Struct):
    bandits: list[Bandit]


class ArmName(Struct, forbid_unknown_fields=True):
    """An arm, by its name."""

    name: Name


class NewDecision(Struct, forbid_unknown_fields=True):
    """A request for a decision; the same id again gives the same decision."""

    context: Numbers | dict[str, Number] = []
    available: Names | None = None
    id: Id | None = None


class NewDecisions(Struct, forbid_unknown_fields=True):
    decisions: Annotated[list[NewDecision], Meta(min_length=1, max_length=1000)]


class MadeDecisions(Struct):
    decisions: list[MadeDecision]


class NewReward(Struct, forbid_unknown_fields=True):
    """The reward of a decision."""

    id: Id
    reward: Number


class Problem(Struct):
    """Why something was refused, and what helps."""

    code: str
    message: str
    remedy: str


class Error(Struct):
    error: Problem


class Learned(Struct, omit_defaults=True):
    """What became of a reward: learned, or a duplicate of the one before."""

    id: str
    reward: float | UnsetType = UNSET
    status: str | UnsetType = UNSET
    error: Problem | UnsetType = UNSET


class NewRewards(Struct, forbid_unknown_fields=True):
    rewards: Annotated[list[NewReward], Meta(min_length=1, max_length=1000)]


class NewCorrection(Struct, forbid_unknown_fields=True):
    """What the reward of a decision should have been; null takes it back."""

    id: Id
    reward: Number | None


class LearnedMany(Struct):
    rewards: list[Learned]
