"""Decisions that were just made, as they are answered and as they are logged."""

import secrets
import time
from builtins import id as identity
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from driftbandits.agents.decision_block import OpenDecision
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.requests import AgentDecision, PolicyInput
from driftbandits.logs.events import input_bytes
from driftbandits.service.store.records import Event


class MadeDecision(Struct, omit_defaults=True):
    """The chosen arm and the probabilities with which it was drawn."""

    id: Annotated[str, Meta(description="Id of the decision; send it with the reward.")]
    arm: Annotated[str, Meta(description="Name of the arm to play.")]
    probability: Annotated[float, Meta(description="Probability with which it was chosen.")]
    probabilities: Annotated[
        dict[str, float], Meta(description="Probabilities of all arms, by name.")
    ]
    slate: Annotated[str | UnsetType, Meta(description="With k: id of the slate.")] = UNSET
    place: Annotated[
        int | UnsetType, Meta(description="With k: its place on the slate, from 1 on.")
    ] = UNSET

    def on_slate(self, slate: str, place: int) -> "MadeDecision":
        return structs.replace(self, slate=slate, place=place)


def answered(decision: AgentDecision) -> MadeDecision:
    """The answer for a decision that was made before."""
    probabilities = decision.probabilities
    return MadeDecision(decision.id, decision.arm, probabilities[decision.arm], probabilities)


class Noted(NamedTuple):
    answers: dict[str, MadeDecision]  # by id
    events: list[Event]


def noted(
    book: DecisionBook,
    made: Mapping[str, OpenDecision],
    new: Mapping[str, PolicyInput],
    now: float,
    first: int,
) -> Noted:
    """Makes answers, and events from that seq on.

    Probabilities and masks are often the same object for many.
    """
    names = book.arms.names
    answers: dict[str, MadeDecision] = {}
    events: list[Event] = []
    masks: dict[int, bytes] = {}
    shared: dict[int, tuple[bytes, dict[str, float]]] = {}
    for seq, (id, request) in enumerate(new.items(), first):
        decision, available = made[id], request.available
        mask = masks.get(identity(available))
        if mask is None:
            mask = masks[identity(available)] = available[: len(names)].tobytes()
        arm, probabilities = decision.arm, decision.probabilities
        both = shared.get(identity(probabilities))
        if both is None:
            by_name = dict(zip(names, probabilities.tolist(), strict=True))
            both = shared[identity(probabilities)] = probabilities.tobytes(), by_name
        logged, by_name = both
        name = names[arm]
        probability, context = by_name[name], input_bytes(book, request)
        answers[id] = MadeDecision(id, name, probability, by_name)
        # By position, in the order of its fields: names would take half of the time of this loop.
        events.append(
            Event(
                seq, "decision", now, id, arm, probability, logged, context, mask, None,
                request.place,
            )
        )  # fmt: skip
    return Noted(answers, events)


def new_ids(count: int) -> Iterator[str]:
    """Makes ids in the order of time, so that an index grows at its end, with 60 random bits."""
    moment, digits = f"{time.time_ns() // 1000:013x}", secrets.token_hex(8 * count)
    return (moment + digits[first : first + 15] for first in range(0, 16 * count, 16))
