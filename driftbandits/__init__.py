"""Multi-armed and contextual bandits whose rewards change over time.

The public names are imported when they are first used, so that `import driftbandits` and the
command line's help do not wait for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.16.0"

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
    "Trace": "simulation.traces",
    "simulate": "simulation.engine",
    "MEASURES": "experiments.metrics",
    "Estimate": "experiments.metrics",
    "Summary": "experiments.metrics",
    "estimate": "experiments.metrics",
    "paired_difference": "experiments.metrics",
    "Experiment": "experiments.experiment",
    "read_experiment": "experiments.files",
    "Results": "experiments.results",
    "read_results": "running.store",
    "run_experiment": "running.runner",
    "run_experiments": "running.runner",
    "compare": "running.comparison",
    "Agent": "agents.agent",
    "AgentDecision": "agents.requests",
    "category": "agents.fields",
    "cyclic": "agents.fields",
    "flag": "agents.fields",
    "number": "agents.fields",
    "Request": "agents.requests",
    "RebuiltAgent": "logs.rebuild",
    "rebuild_agent": "logs.rebuild",
    "Client": "client",
    "ServiceError": "service_calls",
    "asgi_app": "service.server",
    "to_gymnasium": "integrations.gymnasium",
    "from_gymnasium": "integrations.gymnasium",
    "external_policy": "integrations.external",
    "simulate_external": "integrations.external_simulation",
    "compare_with": "integrations.external_comparison",
    "draw_curves": "report.curves",
    "write_report": "report.page",
}

__all__ = [  # spelled out: type checkers read it
    "ENVIRONMENTS",
    "MEASURES",
    "POLICIES",
    "TRANSFORMATIONS",
    "Agent",
    "AgentDecision",
    "BanditSpec",
    "Client",
    "Decision",
    "Environment",
    "Estimate",
    "Experiment",
    "InputError",
    "Observation",
    "Policy",
    "RebuiltAgent",
    "Request",
    "Results",
    "Rewards",
    "ServiceError",
    "Summary",
    "Trace",
    "__version__",
    "asgi_app",
    "build_environment",
    "build_policy",
    "category",
    "compare",
    "compare_with",
    "cyclic",
    "draw_curves",
    "estimate",
    "external_policy",
    "flag",
    "from_gymnasium",
    "number",
    "paired_difference",
    "read_experiment",
    "read_results",
    "rebuild_agent",
    "run_experiment",
    "run_experiments",
    "simulate",
    "simulate_external",
    "to_gymnasium",
    "write_report",
]

if TYPE_CHECKING:
    from driftbandits.agents.agent import Agent
    from driftbandits.agents.fields import category, cyclic, flag, number
    from driftbandits.agents.requests import AgentDecision, Request
    from driftbandits.check import InputError
    from driftbandits.client import Client
    from driftbandits.core import (
        BanditSpec,
        Decision,
        Environment,
        Observation,
        Policy,
        Rewards,
    )
    from driftbandits.environments import ENVIRONMENTS, TRANSFORMATIONS, build_environment
    from driftbandits.experiments.experiment import Experiment
    from driftbandits.experiments.files import read_experiment
    from driftbandits.experiments.metrics import (
        MEASURES,
        Estimate,
        Summary,
        estimate,
        paired_difference,
    )
    from driftbandits.experiments.results import Results
    from driftbandits.integrations.external import external_policy
    from driftbandits.integrations.external_comparison import compare_with
    from driftbandits.integrations.external_simulation import simulate_external
    from driftbandits.integrations.gymnasium import from_gymnasium, to_gymnasium
    from driftbandits.logs.rebuild import RebuiltAgent, rebuild_agent
    from driftbandits.policies import POLICIES, build_policy
    from driftbandits.report.curves import draw_curves
    from driftbandits.report.page import write_report
    from driftbandits.running.comparison import compare
    from driftbandits.running.runner import run_experiment, run_experiments
    from driftbandits.running.store import read_results
    from driftbandits.service.server import asgi_app
    from driftbandits.service_calls import ServiceError
    from driftbandits.simulation.engine import simulate
    from driftbandits.simulation.traces import Trace


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'driftbandits' has no attribute {name!r}")
    from driftbandits.extras import needed_for

    with needed_for(f"driftbandits.{name}"):
        value = getattr(import_module(f"driftbandits.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
