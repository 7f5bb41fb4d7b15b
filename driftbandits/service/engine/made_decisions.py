"""Decisions that were just made, as they are answered and as they are logged."""

import secrets
import time
from builtins import id as identity
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from driftbandits.agents.decision_block import OpenDecision
from driftbandits.agents.requests import AgentDecision, PolicyInput
from driftbandits.logs.events import FLOAT
from driftbandits.service.store.records import Event


class MadeDecision(Struct):
    """The chosen arm and the probabilities with which it was drawn."""

    id: Annotated[str, Meta(description="Id of the decision; send it with the reward.")]
    arm: Annotated[str, Meta(description="Name of the arm to play.")]
    probability: Annotated[float, Meta(description="Probability with which it was chosen.")]
    probabilities: Annotated[
        dict[str, float], Meta(description="Probabilities of all arms, by name.")
    ]


def answered(decision: AgentDecision) -> MadeDecision:
    """The answer for a decision that was made before."""
    probabilities = decision.probabilities
    return MadeDecision(decision.id, decision.arm, probabilities[decision.arm], probabilities)


class Noted(NamedTuple):
    answers: dict[str, MadeDecision]  # by id
    events: list[Event]


def noted(
    made: Mapping[str, OpenDecision],
    new: Mapping[str, PolicyInput],
    names: Sequence[str],
    now: float,
    first: int,
) -> Noted:
    """Makes answers, and events from that seq on; `names` are those of the arms.

    Probabilities and masks are often the same object for many.
    """
    answers: dict[str, MadeDecision] = {}
    events: list[Event] = []
    masks: dict[int, bytes] = {}
    shared: dict[int, tuple[bytes, dict[str, float]]] = {}
    for seq, (id, (context, available)) in enumerate(new.items(), first):
        arm, probabilities = made[id].arm, made[id].probabilities
        mask = masks.get(identity(available))
        if mask is None:
            mask = masks[identity(available)] = available[: len(names)].tobytes()
        if identity(probabilities) not in shared:
            by_name = dict(zip(names, probabilities.tolist(), strict=True))
            shared[identity(probabilities)] = probabilities.tobytes(), by_name
        logged, by_name = shared[identity(probabilities)]
        name = names[arm]
        answers[id] = MadeDecision(id, name, by_name[name], by_name)
        event = Event(
            seq=seq,
            kind="decision",
            time=now,
            id=id,
            arm=arm,
            probability=by_name[name],
            probabilities=logged,
            context=context.astype(FLOAT).tobytes() if context.size else b"",
            available=mask,
        )
        events.append(event)
    return Noted(answers, events)


def new_ids(count: int) -> Iterator[str]:
    """Makes ids in the order of time, so that an index grows at its end, with 60 random bits."""
    moment, digits = f"{time.time_ns() // 1000:013x}", secrets.token_hex(8 * count)
    return (moment + digits[first : first + 15] for first in range(0, 16 * count, 16))
