"""What has changed since a file was written: what is new is small where many decisions are open.

The same contents as a file's, but of open decisions only the new ones, and the ids of those that
were open before and are not any more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandits.agents.settings import CHANGEABLE, AgentSettings


class Contents(NamedTuple):
    """What is in a file."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


def continued(parts: Sequence[Contents]) -> Contents:
    """Joins a file's contents and all changes since into the contents of a file written now."""
    *_, (about, arrays) = parts
    if len(parts) == 1:
        return parts[0]
    if any(part.about["answered"] for part in parts):
        raise ValueError("changes of past decisions")
    for part in parts:
        both = part.about.keys() & about.keys()  # an older version may have had fewer settings
        kept = both.intersection(AgentSettings._fields).difference(CHANGEABLE)
        if any(part.about[key] != about[key] for key in kept):
            raise ValueError("changes of another agent")
    closed = {id for part in parts[1:] for id in part.about["closed"]}
    entries: list[list[Any]] = []
    probabilities, tickets = [], []
    for part in parts:
        its_own = part.about["open"]
        stays = np.array([entry[0] not in closed for entry in its_own], bool)
        entries += [entry for entry, kept in zip(its_own, stays, strict=True) if kept]
        sizes = np.array([entry[2] for entry in its_own], int)
        probabilities.append(part.arrays["laws"][np.repeat(stays, sizes)])
        tickets.append(part.arrays["tickets"][stays])
    together = {"laws": np.concatenate(probabilities), "tickets": np.concatenate(tickets)}
    rest = {key: value for key, value in about.items() if key != "closed"}
    return Contents({**rest, "open": entries}, {**arrays, **together})
