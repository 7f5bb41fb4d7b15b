"""Multi-armed and contextual bandits whose rewards drift.

The public names are imported when they are first used, so that `import driftbandits` and the
command line's help do not wait for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.7.0"

_HOMES = {
    "BanditSpec": "core",
    "Decision": "core",
    "Environment": "core",
    "Observation": "core",
    "Policy": "core",
    "Rewards": "core",
    "InputError": "check",
    "POLICIES": "policies",
    "build_policy": "policies",
    "ENVIRONMENTS": "environments",
    "TRANSFORMATIONS": "environments",
    "build_environment": "environments",
    "Trace": "traces",
    "simulate": "simulation",
    "MEASURES": "metrics",
    "Estimate": "metrics",
    "Summary": "metrics",
    "estimate": "metrics",
    "paired_difference": "metrics",
    "Experiment": "experiment",
    "read_experiment": "experiment_file",
    "Results": "results",
    "read_results": "results",
    "run_experiment": "runner",
    "run_experiments": "runner",
    "compare": "comparison",
    "Agent": "agents.agent",
    "AgentDecision": "agents.requests",
    "Request": "agents.requests",
    "Client": "client",
    "ServiceError": "client",
    "to_gymnasium": "neighbours.gym",
    "from_gymnasium": "neighbours.gym",
    "external_policy": "neighbours.external",
    "simulate_external": "neighbours.host",
    "compare_with": "neighbours.table",
    "draw_curves": "report.curves",
    "write_report": "report.page",
}

__all__ = [*_HOMES, "__version__"]

if TYPE_CHECKING:
    from driftbandits.agents.agent import Agent
    from driftbandits.agents.requests import AgentDecision, Request
    from driftbandits.check import InputError
    from driftbandits.client import Client, ServiceError
    from driftbandits.comparison import compare
    from driftbandits.core import (
        BanditSpec,
        Decision,
        Environment,
        Observation,
        Policy,
        Rewards,
    )
    from driftbandits.environments import ENVIRONMENTS, TRANSFORMATIONS, build_environment
    from driftbandits.experiment import Experiment
    from driftbandits.experiment_file import read_experiment
    from driftbandits.metrics import MEASURES, Estimate, Summary, estimate, paired_difference
    from driftbandits.neighbours.external import external_policy
    from driftbandits.neighbours.gym import from_gymnasium, to_gymnasium
    from driftbandits.neighbours.host import simulate_external
    from driftbandits.neighbours.table import compare_with
    from driftbandits.policies import POLICIES, build_policy
    from driftbandits.report.curves import draw_curves
    from driftbandits.report.page import write_report
    from driftbandits.results import Results, read_results
    from driftbandits.runner import run_experiment, run_experiments
    from driftbandits.simulation import simulate
    from driftbandits.traces import Trace


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'driftbandits' has no attribute {name!r}")
    value = getattr(import_module(f"driftbandits.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
