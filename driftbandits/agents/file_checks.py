"""Whether what a file holds could have been written by `Agent.save`.

Its checksum says that it was not damaged, not that it is right. What is found here to be wrong is a
ValueError, which the file turns into a message.
"""

import math
from typing import Any

import numpy as np

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.packed_tickets import WORD, Layout, columns

About = dict[str, Any]
LARGEST_FLOAT = 1e36  # sums of squares of allowed numbers stay below
MOST_STEPS = 2**30  # decisions of one agent: twice as many no longer fit into 32 bits
COUNTS = ("decisions", "rewards", "expired")
SEGMENT_TYPES = {"arms": np.int32, "sizes": np.int32, "laws": np.uint16, "times": np.float64}


def must(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def check_about(about: About, slots: np.ndarray) -> None:
    must(isinstance(about, dict), "its description is none")
    names, open, past = (about[key] for key in ("arms", "open", "answered"))
    must(all(isinstance(each, list) for each in (names, open, past)), "a list is none")
    must(all(check.is_integer(about[key]) for key in COUNTS), "a count is no whole number")
    must(min(about[key] for key in COUNTS) >= 0, "a count is negative")
    known = about["rewards"] + about["expired"] + len(open)
    must(known <= about["decisions"] < MOST_STEPS, "its counts do not add up")
    checks.moment(about["clock"])
    # The memory doubles when it is full, so that there are never more slots.
    must(slots.shape == () and slots.dtype.kind == "i", "its slots are no whole number")
    must(len(names) <= int(slots) <= 2 * len(names), "its slots do not fit its arms")


def is_finite(value: object) -> bool:
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)  # type: ignore[arg-type]


def check_state(state: dict[str, np.ndarray]) -> None:
    for path, array in state.items():
        check_numbers(path, array)


def check_numbers(what: str, array: np.ndarray) -> None:
    """Checks numbers; the lowest integer that policies use is -1."""
    if array.dtype.kind == "f":
        within = np.abs(array) < LARGEST_FLOAT  # which NaN is not
        must(bool(within.all()), f"{what} has something that is not a number, or is too large")
    elif array.dtype.kind == "i":
        within = (array >= -1) & (array < MOST_STEPS)
        must(bool(within.all()), f"{what} has a whole number that is negative or too large")


def check_rehearsal(probabilities: np.ndarray, state: dict[str, np.ndarray]) -> None:
    """Tries a few decisions and rewards, because wrong numbers show when they are used."""
    adds_up = (probabilities >= 0).all(axis=1) & (abs(probabilities.sum(axis=1) - 1) < 0.01)
    must(bool(adds_up.all()), "its probabilities are not numbers")
    check_state(state)


def check_decisions(about: About, probabilities: np.ndarray) -> None:
    """Checks the entries and probabilities of open and past decisions."""
    ids, sizes, last = set(), 0, -math.inf
    for id, arm, size, time in about["open"]:
        check_entry(id, arm, size, len(about["arms"]))
        must(is_finite(time) and last <= time <= about["clock"], "a decision is out of order")
        ids.add(id)
        sizes, last = sizes + size, time
    for id, arm, size, reward, expired in about["answered"]:
        check_entry(id, arm, size, len(about["arms"]))
        must(reward is None or checks.fits(reward), "a reward is out of range")
        must(isinstance(expired, bool), "a decision is neither expired nor not")
        ids.add(id)
        sizes += size
    must(len(ids) == len(about["open"]) + len(about["answered"]), "an id is there twice")
    must(probabilities.shape == (sizes,), "its probabilities do not fit its decisions")
    check_probabilities(probabilities)


def check_segment(
    about: About, arrays: dict[str, np.ndarray], is_open: np.ndarray, names: int
) -> None:
    """Checks the decisions of a segment, without their tickets."""
    ids, probabilities, count = about["ids"], arrays["probabilities"], len(is_open)
    must(check.is_integer(about["slots"]) and about["slots"] > 0, "its slots are none")
    must(count > 0 and isinstance(ids, list) and len(ids) == count, "its ids are none")
    found = [id for id, still in zip(ids, is_open, strict=True) if still]
    must(all(isinstance(id, str) and checks.is_name(id) for id in found), "an id is none")
    for key, kind in SEGMENT_TYPES.items():
        must(arrays[key].dtype == kind and arrays[key].shape == (count,), f"its {key} are none")
    arms, sizes, laws, times = (arrays[key] for key in SEGMENT_TYPES)
    known = (arms >= 0) & (arms < sizes) & (sizes <= min(names, about["slots"]))
    must(bool(known.all()), "an arm is none")
    must(bool(np.isfinite(times).all() and (np.diff(times) >= 0).all()), "its times are none")
    must(probabilities.shape == (len(probabilities), about["slots"]), "its probabilities are none")
    must(laws.max() < len(probabilities), "probabilities are missing")
    check_probabilities(probabilities)


def check_probabilities(probabilities: np.ndarray) -> None:
    must(probabilities.dtype == np.float32, "its probabilities are of another type")
    in_range = (probabilities >= 0) & (probabilities <= 1.001)  # which NaN is not
    must(bool(in_range.all()), "a probability is out of range")


def check_entry(id: object, arm: object, size: object, arms: int) -> None:
    must(isinstance(id, str) and checks.is_name(id), "an id is none")
    must(type(arm) is int and type(size) is int and 0 <= arm < size <= arms, "an arm is none")


def check_tickets(tickets: np.ndarray, layout: Layout, count: int) -> None:
    must(tickets.shape == (count, layout.width), "its tickets do not fit its decisions")
    must(tickets.dtype == WORD, "its tickets are of another type")
    for leaf, words in zip(layout.leaves, columns(layout, tickets), strict=True):
        if leaf.dtype.kind in "fi":
            check_numbers("a ticket", words.view(leaf.dtype))
