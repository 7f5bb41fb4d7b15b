"""A decision that was made before is made again, with the arm that was drawn then.

Where `act` is traced inside `making_again`, everything that chooses an arm gives the known one. So
the policy's state and its ticket are those of a policy whose draw came out as that arm, with all
arms that were available. What is divided by the arm's probability takes the one it was drawn with:
only so are such estimates right on average.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from jax import Array


class Made(NamedTuple):
    """What is known of a decision; on the host, of many."""

    arm: Any  # () int32
    probability: Any  # () float32, with which it was drawn


known: ContextVar[Made | None] = ContextVar("made_before", default=None)


@contextmanager
def making_again(made: Made | None) -> Iterator[None]:
    """None makes a new decision."""
    token = known.set(made)
    try:
        yield
    finally:
        known.reset(token)


def arm_or_known(arm: Array) -> Array:
    made = known.get()
    known_arm: Array = arm if made is None else made.arm
    return known_arm


def probability_or_known(probability: Array) -> Array:
    made = known.get()
    known_one: Array = probability if made is None else made.probability
    return known_one
