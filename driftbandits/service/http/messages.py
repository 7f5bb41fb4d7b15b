"""The JSON messages of the API: requests, answers, their bounds, and what each field means."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from driftbandits.agents.checks import LARGEST_NUMBER
from driftbandits.agents.settings import MOST_OPEN
from driftbandits.service.engine.made_decisions import MadeDecision

Name = Annotated[str, Meta(min_length=1, max_length=200)]
BanditName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^/]+$")]
Number = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Numbers = Annotated[list[Number], Meta(max_length=1000)]
Names = Annotated[list[Name], Meta(min_length=1, max_length=1000)]
Value = Number | Annotated[str, Meta(max_length=200)] | bool | None  # of a context or a feature
Values = Annotated[dict[str, Value], Meta(max_length=1000, title="object of values")]
Features = Annotated[Numbers | Values, Meta(title="features")]  # in order, or by name
ArmsWithFeatures = Annotated[dict[Name, Features | None], Meta(min_length=1, max_length=1000)]
Schema = Annotated[
    dict[Name, Annotated[str, Meta(max_length=100_000)]],
    Meta(max_length=1000, title="schema"),
]
Columns = Annotated[list[Name], Meta(max_length=1000)] | Schema
Range = tuple[Number, Number]
OutOfRange = Literal["refuse", "clip", "accept"]
Means = list[float | None]

ARM_NAME = Meta(description="Name of the arm.")
WHAT_IF_OUTSIDE = Meta(description="What happens to a number out of its range.")


class NewBandit(Struct, forbid_unknown_fields=True):
    """A bandit to create."""

    name: Annotated[
        BanditName, Meta(description="Name of the bandit. No control characters, no slash.")
    ]
    arms: Annotated[
        Names | ArmsWithFeatures,
        Meta(description="Names of the arms, or their features by name. null: not known."),
    ]
    context: Annotated[
        Columns,
        Meta(description="Names of the numbers that come with each decision, or a schema."),
    ] = []
    features: Annotated[
        Columns | None,
        Meta(description="Names of the features of arms, or a schema. null: as the first arm's."),
    ] = None
    policy: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            description="A policy, with settings as in recurrent(energy=0).",
        ),
    ] = "tracker"
    seed: Annotated[
        Annotated[int, Meta(ge=0, lt=2**31)] | None,
        Meta(description="Random seed. The service draws one if it is null."),
    ] = None
    window: Annotated[
        Annotated[float, Meta(gt=0, le=1e9)] | None,
        Meta(description="Seconds that a decision waits for its reward. null waits forever."),
    ] = 86400.0
    default_reward: Annotated[
        Number | None,
        Meta(description="Reward that is learned when the window ends. null learns nothing."),
    ] = None
    reward_range: Annotated[Range, Meta(description="Lowest and highest reward.")] = (0.0, 1.0)
    context_ranges: Annotated[
        dict[str, Range],
        Meta(
            description="Lowest and highest value of context numbers, by name. -100 to 100 for "
            "the others."
        ),
    ] = {}
    out_of_range: Annotated[OutOfRange, WHAT_IF_OUTSIDE] = "refuse"
    noise: Annotated[
        float,
        Meta(
            gt=0,
            le=LARGEST_NUMBER,
            description="Sub-Gaussian constant of the rewards, for policies that need it.",
        ),
    ] = 0.5
    horizon: Annotated[
        Annotated[int, Meta(ge=1, lt=2**31)] | None,
        Meta(description="Number of decisions, for policies that need it."),
    ] = None
    max_open: Annotated[
        int,
        Meta(
            ge=1000,
            le=MOST_OPEN,
            description="How many decisions may be open. One more expires the oldest.",
        ),
    ] = 100_000


class BanditChanges(Struct, forbid_unknown_fields=True):
    """Settings to change from now on."""

    out_of_range: Annotated[OutOfRange | UnsetType, WHAT_IF_OUTSIDE] = UNSET
    context_ranges: Annotated[
        dict[str, Range] | UnsetType,
        Meta(description="Lowest and highest value of context numbers, by name."),
    ] = UNSET


class Arm(Struct):
    """An arm of a bandit."""

    name: Annotated[str, ARM_NAME]
    retired: Annotated[bool, Meta(description="Whether it is no longer chosen.")]
    features: Annotated[
        list[float] | dict[str, float | str | bool] | None,
        Meta(description="Its features; null if they are not known."),
    ] = None


class Bandit(Struct):
    """A bandit with its settings and counts."""

    name: Annotated[str, Meta(description="Name of the bandit.")]
    policy: Annotated[str, Meta(description="The policy with its settings.")]
    context: Annotated[
        list[str] | dict[str, str], Meta(description="Names of the context numbers, or a schema.")
    ]
    features: Annotated[
        list[str] | dict[str, str], Meta(description="Names of arms' features, or a schema.")
    ]
    arms: Annotated[list[Arm], Meta(description="All arms, including retired ones.")]
    seed: Annotated[int, Meta(description="Random seed.")]
    window: Annotated[
        float | None, Meta(description="Seconds that a decision waits for its reward.")
    ]
    default_reward: Annotated[
        float | None, Meta(description="Reward that is learned when the window ends.")
    ]
    reward_range: Annotated[tuple[float, float], Meta(description="Lowest and highest reward.")]
    context_ranges: Annotated[
        dict[str, tuple[float, float]],
        Meta(description="Lowest and highest value of context numbers, by name."),
    ]
    out_of_range: Annotated[str, WHAT_IF_OUTSIDE]
    noise: Annotated[float, Meta(description="Sub-Gaussian constant of the rewards.")]
    horizon: Annotated[int | None, Meta(description="Number of decisions, if known.")]
    max_open: Annotated[int, Meta(description="How many decisions may be open.")]
    created: Annotated[float, Meta(description="When it was created, in unix seconds.")]
    decisions: Annotated[
        int | None,
        Meta(description="Decisions made. This and the next three are null before it is loaded."),
    ]
    rewards: Annotated[int | None, Meta(description="Rewards learned.")]
    expired: Annotated[int | None, Meta(description="Decisions that expired without a reward.")]
    open: Annotated[int | None, Meta(description="Decisions that wait for a reward.")]
    worker: Annotated[str, Meta(description="Address of the worker that owns it.")]


class Bandits(Struct):
    """All bandits."""

    bandits: Annotated[list[Bandit], Meta(description="The bandits.")]


class ArmName(Struct, forbid_unknown_fields=True):
    """An arm, by its name."""

    name: Annotated[Name, ARM_NAME]


class NewArm(Struct, forbid_unknown_fields=True):
    """An arm to add."""

    name: Annotated[Name, ARM_NAME]
    features: Annotated[
        Features | None, Meta(description="Its features: numbers in order, or values by name.")
    ] = None


class NewFeatures(Struct, forbid_unknown_fields=True):
    """New features of an arm."""

    name: Annotated[Name, ARM_NAME]
    features: Annotated[
        Features,
        Meta(description="All of them: numbers in order, or values by name."),
    ]


class NewDecision(Struct, forbid_unknown_fields=True):
    """A request for a decision."""

    context: Annotated[
        Numbers | Values,
        Meta(description="Numbers in the order of the context's names, or values by name."),
    ] = []
    available: Annotated[
        Names | None,
        Meta(description="Arms to choose from. null means all that are not retired."),
    ] = None
    id: Annotated[
        Id | None, Meta(description="Your own id of the decision. The service makes one if null.")
    ] = None
    arms: Annotated[
        ArmsWithFeatures | None,
        Meta(description="Arms to choose from, with features for this decision. null: its own."),
    ] = None
    k: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="How many arms to choose. They have the ids ID.1, ID.2, ..."),
    ] = None


class NewDecisions(Struct, forbid_unknown_fields=True):
    """Requests for decisions."""

    decisions: Annotated[
        list[NewDecision], Meta(min_length=1, max_length=1000, description="The requests.")
    ]


class MadeDecisions(Struct):
    """Decisions, in the order of the requests; those of a slate one after the other."""

    decisions: Annotated[list[MadeDecision], Meta(description="The decisions.")]


class NewReward(Struct, forbid_unknown_fields=True):
    """The reward of a decision."""

    id: Annotated[Id, Meta(description="Id of the decision.")]
    reward: Annotated[Number, Meta(description="The reward.")]


class Problem(Struct):
    """What went wrong, and what helps."""

    code: Annotated[str, Meta(description="A short name of the error, for programs.")]
    message: Annotated[str, Meta(description="What went wrong, for people.")]
    remedy: Annotated[str, Meta(description="What helps.")]


class Error(Struct):
    """The answer of a request that failed."""

    error: Annotated[Problem, Meta(description="What went wrong.")]


class Learned(Struct, omit_defaults=True):
    """What happened to a reward."""

    id: Annotated[str, Meta(description="Id of the decision.")]
    reward: Annotated[float | UnsetType, Meta(description="The reward.")] = UNSET
    status: Annotated[
        str | UnsetType,
        Meta(description="learned, or duplicate if the decision already had this reward."),
    ] = UNSET
    error: Annotated[
        Problem | UnsetType,
        Meta(description="In a batch, instead of reward and status: why it was refused."),
    ] = UNSET


class NewRewards(Struct, forbid_unknown_fields=True):
    """Rewards of decisions."""

    rewards: Annotated[
        list[NewReward], Meta(min_length=1, max_length=1000, description="The rewards.")
    ]


class NewCorrection(Struct, forbid_unknown_fields=True):
    """What the reward of a decision should have been."""

    id: Annotated[Id, Meta(description="Id of the decision.")]
    reward: Annotated[Number | None, Meta(description="The right reward. null takes it back.")]


class LearnedMany(Struct):
    """What happened to each reward, in their order."""

    rewards: Annotated[list[Learned], Meta(description="What happened to each reward.")]


# Only described: these answers are put together elsewhere, as dictionaries.


class MeanRewards(Struct):
    """Mean rewards in each span of time, with 95% normal intervals."""

    mean: Annotated[Means, Meta(description="Mean reward; null without rewards.")]
    low: Annotated[Means, Meta(description="Lower end of the interval.")]
    high: Annotated[Means, Meta(description="Upper end of the interval.")]
    count: Annotated[list[int], Meta(description="Number of rewards.")]


class DriftAlarm(Struct):
    """A change in the mean reward of an arm."""

    time: Annotated[float, Meta(description="When it changed, approximately.")]
    raised: Annotated[float, Meta(description="When the alarm was raised.")]
    before: Annotated[float, Meta(description="Mean reward before the change.")]
    after: Annotated[float, Meta(description="Mean reward after it.")]


class RecentDecision(Struct):
    """One of the newest decisions."""

    id: Annotated[str, Meta(description="Id of the decision.")]
    time: Annotated[float, Meta(description="When it was made.")]
    arm: Annotated[str, Meta(description="Name of the chosen arm.")]
    probability: Annotated[float, Meta(description="Probability with which it was chosen.")]
    reward: Annotated[float | None, Meta(description="Its reward, if it has one.")]
    status: Annotated[str, Meta(description="open, rewarded or expired.")]


class Series(Struct):
    """The data behind the charts: the newest 20,000 decisions in equal spans of time.

    All times are unix seconds.
    """

    name: Annotated[str, Meta(description="Name of the bandit.")]
    now: Annotated[float, Meta(description="The current time.")]
    from_: Annotated[float, Meta(description="Start of the first span.")] = field(name="from")
    to: Annotated[float, Meta(description="End of the last span.")]
    times: Annotated[list[float], Meta(description="End of each span.")]
    arms: Annotated[list[str], Meta(description="Names of the arms.")]
    retired: Annotated[list[bool], Meta(description="Whether each arm is retired.")]
    decisions: Annotated[list[int], Meta(description="Number of decisions in each span.")]
    share: Annotated[
        dict[str, Means],
        Meta(description="Share of the decisions in each span, by arm; null without decisions."),
    ]
    probability: Annotated[
        dict[str, Means],
        Meta(description="Mean selection probability in each span, by arm."),
    ]
    reward: Annotated[
        MeanRewards, Meta(description="Rewards of all arms in each span, by their arrival.")
    ]
    arm_reward: Annotated[dict[str, MeanRewards], Meta(description="The same for each arm.")]
    open: Annotated[int, Meta(description="Decisions that wait for a reward.")]
    expired: Annotated[int, Meta(description="Decisions that expired since the start.")]
    decisions_total: Annotated[int, Meta(description="Decisions since the start.")]
    rewards_total: Annotated[int, Meta(description="Rewards since the start.")]
    alarms: Annotated[
        dict[str, list[DriftAlarm]], Meta(description="The last 20 drift alarms of each arm.")
    ]
    last: Annotated[
        list[RecentDecision], Meta(description="The newest 20 decisions, newest first.")
    ]


class Health(Struct):
    """Whether the process and its engine are alive."""

    status: Annotated[Literal["alive"], Meta(description="Always alive.")]
    engine: Annotated[
        Literal["working", "halted"],
        Meta(description="Whether the thread that decides has shown a sign of life."),
    ]


class Readiness(Struct):
    """Whether the worker can serve."""

    status: Annotated[Literal["ready"], Meta(description="Always ready: otherwise it is 503.")]
