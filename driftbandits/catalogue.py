"""What there is to choose from: read off the tables, so that a new policy shows up by itself."""

from collections.abc import Iterable
from typing import Any

from driftbandits.choice import settings_of, summary_of
from driftbandits.environments import ENVIRONMENTS, TRANSFORMATIONS
from driftbandits.experiment import read_experiment, shipped
from driftbandits.policies import POLICIES


def catalogue(kinds: Iterable[str]) -> dict[str, dict[str, Any]]:
    """For each kind: name -> summary and settings with their defaults."""
    listings = {"policies": policies, "environments": environments, "experiments": experiments}
    return {kind: listings[kind]() for kind in kinds}


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


def experiments() -> dict[str, Any]:
    """The experiment files that come with the package."""
    listing = {}
    for name, path in shipped().items():
        experiment = read_experiment(path)
        size = {"horizon": experiment.horizon, "runs": experiment.runs}
        settings = {} if experiment.drawing else {"policies": len(experiment.policies), **size}
        listing[name] = {"summary": experiment.title, "settings": settings}
    return listing
