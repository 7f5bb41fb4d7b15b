"""The layers of the package, lowest first: a module imports only from layers below its own.

`tests/test_architecture.py` holds the code to it, and `make docs` writes the map in CONTRIBUTING.md
from it.
"""

from typing import NamedTuple


class Layer(NamedTuple):
    modules: tuple[str, ...]  # packages or modules that do not import each other
    what: str


LAYERS = [
    Layer(("atomic_file",), "atomic file writes"),
    Layer(("error_text",), "one-line error messages"),
    Layer(("check",), "checks of what users give, with one grammar for messages"),
    Layer(("choice",), "the notation `name(setting=value)`"),
    Layer(("factories",), "tables that import what is named in them"),
    Layer(("extras",), "which extra installs a missing module"),
    Layer(("core",), "the vocabulary: problem, policy, decision, environment"),
    Layer(("numerics",), "what several policies or environments share, and random keys"),
    Layer(("policies", "environments"), "one file each, and the tables that name them"),
    Layer(("simulation",), "a policy in an environment: engine, devices, threads, delays, traces"),
    Layer(("experiments",), "experiment files, measures, claims and verdicts, tuning, rankings"),
    Layer(("running",), "experiments to results on disk: planned, computed, kept, put together"),
    Layer(("report", "integrations"), "figures, tables and one page; other libraries"),
    Layer(("agents",), "a policy that decides for real users, and what becomes of each reward"),
    Layer(("service.errors",), "what the service refuses, and with which remedy"),
    Layer(("service.store",), "bandits, logs, leases, snapshots and keys in a database"),
    Layer(("logs",), "decision logs: reading events and rebuilding a learner"),
    Layer(
        ("service.metrics", "service.free_memory"),
        "metrics for Prometheus; free memory, given back to the system",
    ),
    Layer(("service.engine",), "the thread that decides and learns for all bandits of a worker"),
    Layer(
        ("service.http",),
        "the ASGI application, limits of connections, routes, messages, roles, pages",
    ),
    Layer(("service_calls",), "requests to a service, repeated where that is safe"),
    Layer(
        ("client_messages", "client_batches"), "what a client sends and receives, batch by batch"
    ),
    Layer(("service.server", "client"), "a worker from start to stop; the service from Python"),
    Layer(("catalogue",), "lists policies, environments and experiments without importing JAX"),
    Layer(("uses",), "what each policy and environment is for"),
    Layer(("explanations",), "the page of a policy or an environment, from its docstrings"),
    Layer(("cli",), "parse, call, print"),
]


def home_of(module: str) -> str:
    """The entry of the table that a module such as `service.http.routes` belongs to."""
    entries = {entry for layer in LAYERS for entry in layer.modules}
    parts = module.split(".")
    found = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next(entry for entry in found if entry in entries)


def level_of(entry: str) -> int:
    return next(level for level, layer in enumerate(LAYERS) if entry in layer.modules)


def as_markdown() -> str:
    """The map, highest layer first."""
    rows = [
        f"| {', '.join(f'`{entry}`' for entry in layer.modules)} | {layer.what} |"
        for layer in reversed(LAYERS)
    ]
    return "\n".join(["| part of `driftbandits` | what |", "| --- | --- |", *rows])
