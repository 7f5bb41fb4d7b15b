"""The worker that an engine belongs to."""

from typing import NamedTuple


class Worker(NamedTuple):
    """Who owns bandits, where the other workers reach it, and how long its leases are."""

    name: str
    url: str
    ttl: float  # seconds
