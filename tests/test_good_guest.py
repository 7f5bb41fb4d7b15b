"""The library leaves the process of its caller as it was: a fresh one tells what it saw."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.uncovered import without_coverage

THREADS = 3  # of the pool that the caller has wished for

PROGRAM = """
import json, logging, os, signal, sqlite3, sys, tempfile, warnings
import jax, jax.numpy as jnp
import scipy.special  # it adds a filter for its own warnings, whoever imports it
from jax._src.xla_bridge import backends_are_initialized

def look():
    root = logging.getLogger()
    return {
        "environment": dict(os.environ),
        "options of JAX": dict(jax.config.values),
        "sqlite3": dict(sqlite3.adapters) | dict(sqlite3.converters),
        "signal handlers": [signal.getsignal(number) for number in signal.valid_signals()],
        "root logger": [root.level, root.disabled, *root.handlers, *root.filters],
        "loggers": [logging.root.manager.disable, logging.getLogger("jax").level],
        "warnings": list(warnings.filters),
        "interpreter": [sys.excepthook, sys.getswitchinterval(), sys.getrecursionlimit()],
        "folder": [os.getcwd()],
    }

def changed():
    now = look()
    return {name: difference(before[name], now[name]) for name in now if now[name] != before[name]}

def difference(old, new):
    if isinstance(old, dict):
        old, new = old.items(), new.items()
    return f"{[x for x in old if x not in new]} -> {[x for x in new if x not in old]}"

def pool_threads():
    tasks = "/proc/self/task"
    names = [open(f"{tasks}/{task}/comm").read() for task in os.listdir(tasks)]
    return sum("XLAEigen" in name for name in names)

def waits_for_the_result():
    long = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, y: jnp.tanh(y @ x), x))
    x = jnp.ones((300, 300))
    long(x).block_until_ready()
    return long(x).is_ready()

before, seen = look(), {}
"""
WITH_US = """
for name in ["Client", "simulate", "compare", "Agent"]:
    exec(f"from driftbandits import {name}")
    seen[f"changed by the import of {name}"] = changed()
seen["computed at import"] = backends_are_initialized()

simulate("thompson", "bernoulli", horizon=50, runs=3, cores=2)
compare(["thompson", "uniform"], "abrupt", horizon=50, runs=2)
agent = Agent(["red", "green"], policy="thompson")
agent.reward(agent.decide().id, 1.0)
with tempfile.TemporaryDirectory() as folder:
    agent = Agent(["red", "green"], policy="uniform", cache=folder)
    agent.reward(agent.decide().id, 1.0)
Client("http://127.0.0.1:1").close()
seen["changed by use"] = changed()

from driftbandits.simulation.devices import _idle, agents_device
seen["device is JAX's own"] = jnp.arange(3).devices() == {jax.devices()[0]}
seen["agents have another"] = agents_device().client is not jax.devices()[0].client
if sys.platform == "linux":
    seen["threads"] = pool_threads() - len(_idle) - 1  # each of our devices has one
seen["waits"] = waits_for_the_result()
print(json.dumps(seen))
"""
WITHOUT_ASYNCHRONOUS_DISPATCH = """
jax.config.update("jax_cpu_enable_async_dispatch", False)
print(json.dumps({"waits": waits_for_the_result()}))
"""


def what_is_seen(program: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        capture_output=True,
        text=True,
        env=without_coverage() | {"NPROC": str(THREADS)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    return what_is_seen(WITH_US)


@pytest.mark.parametrize("name", ["Client", "simulate", "compare", "Agent"])
def test_imports_change_nothing(seen, name: str) -> None:
    assert seen[f"changed by the import of {name}"] == {}


def test_imports_compute_nothing(seen) -> None:
    assert not seen["computed at import"]


def test_use_changes_nothing(seen) -> None:
    assert seen["changed by use"] == {}


def test_another_program_computes_where_it_did(seen) -> None:
    assert seen["device is JAX's own"]
    assert seen["agents have another"]


if sys.platform == "linux":  # threads are counted in /proc

    def test_another_program_keeps_its_threads(seen) -> None:
        assert seen["threads"] == THREADS


def test_another_program_keeps_its_asynchronous_dispatch(seen) -> None:
    assert not seen["waits"]
    assert what_is_seen(WITHOUT_ASYNCHRONOUS_DISPATCH)["waits"], "or the test sees nothing"
