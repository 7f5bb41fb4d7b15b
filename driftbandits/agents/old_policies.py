"""Policies that have changed since they were saved in files and databases up to version 4."""

from driftbandits.choice import Choice, parse

SAME_SINCE = 5  # the version of files and of databases


def as_it_was(policy: str) -> str:
    """What a policy of an older version is called today: `tracker` had other defaults."""
    choice = parse("policy", policy)
    if choice.name != "tracker" or "version" in choice.settings:
        return policy
    return str(Choice("tracker", {"version": 1, **choice.settings}))
