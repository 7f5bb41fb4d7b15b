"""Replays a decision with the arm that was drawn then.

If `act` is traced inside `making_again`, everything that chooses an arm returns the known one. So
the policy's state and ticket are those of a policy that drew that arm from all available arms.
Estimates that divide by the arm's probability use the one it was drawn with; otherwise they would
be biased.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from jax import Array


class Made(NamedTuple):
    """What is known of a decision; on the host, of several."""

    arm: Any  # () int32
    probability: Any  # () float32, with which it was drawn


known: ContextVar[Made | None] = ContextVar("made_before", default=None)


@contextmanager
def making_again(made: Made | None) -> Iterator[None]:
    """Replays the given decision inside the block; None makes a new one."""
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
