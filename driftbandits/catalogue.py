"""What there is to choose from: read off the tables, so that a new policy shows up by itself."""

from collections.abc import Iterable
from typing import Any

from driftbandits.choice import settings_of, summary_of
from driftbandits.environments import ENVIRONMENTS, TRANSFORMATIONS
from driftbandits.policies import POLICIES


def catalogue(kinds: Iterable[str]) -> dict[str, dict[str, Any]]:
    """For each kind: name -> summary and settings with their defaults."""
    return {kind: {"policies": policies, "environments": environments}[kind]() for kind in kinds}


def policies() -> dict[str, Any]:
    return {
        name: {"summary": summary_of(factory), "settings": settings_of(factory)}
        for name, factory in POLICIES.items()
    }


def environments() -> dict[str, Any]:
    """Every environment also takes the transformations, which are off by default."""
    off = dict.fromkeys(TRANSFORMATIONS)
    return {
        name: {"summary": summary_of(factory), "settings": {**settings_of(factory), **off}}
        for name, factory in ENVIRONMENTS.items()
    }
