"""The worker that an engine belongs to."""

from math import isfinite
from typing import NamedTuple


class Worker(NamedTuple):
    """Who owns bandits, where the other workers reach it, and how long its lease is."""

    name: str
    url: str
    ttl: float  # seconds; infinite for a worker that is alone with its database

    @property
    def may_expire(self) -> bool:
        return isfinite(self.ttl)
