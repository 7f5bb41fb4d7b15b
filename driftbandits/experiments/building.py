"""Builds the policy and the environment of a line from text, once per process.

Checking, planning and computing an experiment all use these functions. Every default is written
out first, so that equal lines have equal texts and share their objects.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from driftbandits import check
from driftbandits.choice import parse, with_defaults
from driftbandits.core import Environment, Policy
from driftbandits.environments import ENVIRONMENTS, build_environment
from driftbandits.policies import POLICIES, build_policy

TABLES: dict[str, Mapping[str, Any]] = {"policy": POLICIES, "environment": ENVIRONMENTS}


def written_out(kind: str, text: str) -> str:
    """A policy or an environment with every setting written out, in a fixed order."""
    choice = parse(kind, text)
    check.known(kind, choice.name, TABLES[kind])
    return str(with_defaults(choice, TABLES[kind]))


def line_environment(text: str) -> Environment:
    return build_environment(written_out("environment", text))


def line_policy(text: str, environment: Environment, horizon: int) -> Policy:
    version = POLICIES.version(parse("policy", text).name)
    return _policy(written_out("policy", text), environment, horizon, version)


@lru_cache(maxsize=4096)  # lines; a policy is a few closures
def _policy(text: str, environment: Environment, horizon: int, version: int) -> Policy:
    return build_policy(text, environment.spec._replace(horizon=horizon))
