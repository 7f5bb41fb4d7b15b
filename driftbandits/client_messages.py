"""What a client sends and receives: requests, bandits, decisions and outcomes."""

import math
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

from driftbandits import check
from driftbandits.service_calls import ServiceError, error_from

REQUEST_FIELDS = ["context", "available", "id", "arms", "k"]


class Arm(NamedTuple):
    """An arm of a bandit.

    Attributes:
        name: The name of the arm.
        retired: Whether it is no longer chosen.
        features: Its features: numbers in order, values by name, or None if they are not known.
    """

    name: str
    retired: bool
    features: list[float] | dict[str, Any] | None = None


class Bandit(NamedTuple):
    """A bandit with its settings and its counts so far.

    Attributes:
        name: The name of the bandit.
        policy: The policy with its settings.
        context: The names of the context numbers, or the types of a schema by name.
        arms: All arms, including retired ones.
        seed: The random seed.
        window: How many seconds a decision waits for its reward.
        default_reward: The reward that is learned when the window ends.
        reward_range: The lowest and the highest reward.
        context_ranges: The lowest and the highest value of context numbers, by name.
        out_of_range: What happens to a number out of its range: "refuse", "clip" or "accept".
        noise: The sub-Gaussian constant of the rewards.
        horizon: The number of decisions, if known.
        max_open: How many decisions may be open.
        created: When it was created, in unix seconds.
        decisions: The number of decisions. This and the next three are None before it is loaded.
        rewards: The number of rewards.
        expired: The number of decisions that expired.
        open: The number of decisions that wait for a reward.
        worker: The address of the worker that owns it.
        features: The names of the features of arms, or the types of a schema by name.
    """

    name: str
    policy: str
    context: tuple[str, ...] | dict[str, str]
    arms: tuple[Arm, ...]
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
    decisions: int | None
    rewards: int | None
    expired: int | None
    open: int | None
    worker: str | None
    features: tuple[str, ...] | dict[str, str] = ()


class Decision(NamedTuple):
    """A decision of the service.

    Attributes:
        id: The id to send its reward with.
        arm: The name of the arm to play.
        probability: The probability with which it was chosen.
        probabilities: The probabilities of all arms, by name.
        slate: The id of its slate, or None.
        place: Its place on the slate, or None.
    """

    id: str
    arm: str
    probability: float
    probabilities: dict[str, float]
    slate: str | None = None
    place: int | None = None


class Outcome(NamedTuple):
    """What happened to a reward.

    Attributes:
        id: The id of the decision.
        reward: The reward, or None if it was refused.
        status: "learned", "duplicate" or "refused".
        error: Why it was refused.
    """

    id: str
    reward: float | None
    status: str
    error: ServiceError | None = None


class Correction(NamedTuple):
    """A reward before and after its correction.

    Attributes:
        id: The id of the decision.
        before: The reward so far, or None if there was none.
        reward: The reward from now on, or None if it was taken back.
    """

    id: str
    before: float | None
    reward: float | None


def finite(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        check.fail(name, "a finite number", value)
    return float(value)


def new_id() -> str:
    """Makes an id that starts with the time: ids in order are faster to look up in the log."""
    return f"{time.time_ns() // 1000:013x}{secrets.token_hex(8)}"


def as_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the body of a request for a decision, which always has an id."""
    for name in request:
        check.known("field of a request", name, REQUEST_FIELDS)
        if name not in ("id", "k") and isinstance(request[name], str):
            check.fail(name, "a list", request[name])
    context, available, id, arms, k = (request.get(name) for name in REQUEST_FIELDS)
    body: dict[str, Any] = {"id": new_id() if id is None else id}
    if context is not None:
        body["context"] = as_values("context", context)
    if available is not None:
        body["available"] = list(available)
    if arms is not None:
        body["arms"] = as_arms(arms)
    if k is not None:
        check.integer(k=k)
        body["k"] = int(k)
    return body


def as_values(what: str, given: Any) -> Any:
    """A context, or the features of an arm: numbers in order, or values by name."""
    if given is None:  # of an arm: those that it has
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        check.fail(what, "numbers in order, or values by name", given)
    if not isinstance(given, Mapping):
        return [number(what, value) for value in given]
    return {name: as_value(str(name), value) for name, value in given.items()}


def as_value(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return bool(value) if is_flag(value) else finite(name, value)


def number(name: str, value: Any) -> float:
    """A finite number, but no flag."""
    if is_flag(value):
        check.fail(name, "a finite number", value)
    return finite(name, value)


def is_flag(value: Any) -> bool:
    """Whether it is a bool, or NumPy's, which a client can know without NumPy."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def as_arms(given: Any) -> Any:
    """The names of arms, or the features of each by name."""
    if not isinstance(given, Mapping):
        return list(given)
    return {name: as_values(f"the features of {name}", each) for name, each in given.items()}


def as_columns(given: Any) -> Any:
    """Names, or the types of a schema as texts."""
    return {n: str(t) for n, t in given.items()} if isinstance(given, Mapping) else list(given)


def as_bandit(answer: Mapping[str, Any]) -> Bandit:
    """Reads a bandit, without fields that a newer service may add."""
    fields: dict[str, Any] = {name: answer.get(name) for name in Bandit._fields}
    fields["arms"] = tuple(
        Arm(arm["name"], arm["retired"], arm.get("features")) for arm in answer["arms"]
    )
    for name in ("context", "features"):
        columns = answer.get(name, ())
        fields[name] = columns if isinstance(columns, dict) else tuple(columns)
    fields["reward_range"] = tuple(answer["reward_range"])
    ranges = answer.get("context_ranges", {})
    fields["context_ranges"] = {name: tuple(ends) for name, ends in ranges.items()}
    return Bandit(**fields)


def as_decision(answer: Mapping[str, Any]) -> Decision:
    fields: dict[str, Any] = {name: answer.get(name) for name in Decision._fields}
    return Decision(**fields)


def as_slates(
    answers: Iterator[Any], requests: list[dict[str, Any]]
) -> list[Decision | list[Decision]]:
    """A decision for each request, or the list of those of its slate."""
    made = map(as_decision, answers)
    return [
        next(made) if "k" not in each else [next(made) for _ in range(each["k"])]
        for each in requests
    ]


def as_outcome(answer: Mapping[str, Any]) -> Outcome:
    if error := answer.get("error"):
        return Outcome(answer["id"], None, "refused", error_from(0, error))
    return Outcome(answer["id"], answer["reward"], answer["status"])
