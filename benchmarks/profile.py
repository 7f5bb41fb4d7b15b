"""python -m benchmarks.profile [REVISION]: where the seconds before a result go.

Prints a table for `compare`, a figure of `reproduce --quick` and an agent's first pair, with an
empty cache and once more: of this tree, and of an older one. On one core, so that nothing overlaps:
importing, tracing, lowering, compiling, loading what is kept, running, and the rest, which plans,
judges, writes and prints.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.first_result import AGENT, COMMAND_LINE, OLD, Processes
from benchmarks.revisions import ROOT, tree_of

COLUMNS = ["import", "trace", "lower", "compile", "load", "run", "rest", "all"]
COMMANDS = {
    "compare": ["compare", "-j", "1"],
    "reproduce --quick, one figure": ["run", "paper/figure_1a", "--quick", "-j", "1", "--out"],
}
CHILD = """
import importlib._bootstrap, sys, threading, time
begin = time.perf_counter()
spent, inside = dict.fromkeys(["import", "trace", "lower", "compile", "load", "run"], 0.0), []

def timed(name, function):
    def call(*arguments, **named):
        if inside:
            return function(*arguments, **named)
        inside.append(name)
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            inside.pop()
            spent[name] += time.perf_counter() - start
    return call

importlib._bootstrap._find_and_load = timed("import", importlib._bootstrap._find_and_load)
import jax, jax.monitoring, jax.experimental.serialize_executable as kept

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}

def listen(event, seconds, **_):
    if event in EVENTS:
        spent[EVENTS[event]] += seconds
    if event == "/jax/compilation_cache/cache_retrieval_time_sec":  # a part of compiling, to JAX
        spent["load"] += seconds
        spent["compile"] -= seconds

jax.monitoring.register_event_duration_secs_listener(listen)
jax.stages.Compiled.__call__ = timed("run", jax.stages.Compiled.__call__)
kept.deserialize_and_load = timed("load", kept.deserialize_and_load)
try:
    exec(sys.argv.pop(1))
finally:
    import json
    spent["all"] = time.perf_counter() - begin
    spent["rest"] = spent["all"] - sum(spent[name] for name in list(spent) if name != "all")
    print("\\n" + json.dumps(spent))
"""


def profile(processes: Processes, code: str, arguments: list[str]) -> dict[str, float]:
    told = processes.run("-c", CHILD, code, *arguments, stdout=subprocess.PIPE).stdout
    found: dict[str, float] = json.loads(told.splitlines()[-1])
    return found


def row(what: str, seconds: dict[str, float]) -> str:
    return f"| {what} | {' | '.join(f'{seconds[name]:.2f}' for name in COLUMNS)} |"


def table(tree: Path, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(tree, Path(folder))
        processes.run("-c", COMMAND_LINE, "compare", "--horizon", "50")  # it leaves bytecode
        processes.forget()
        for what, arguments in COMMANDS.items():
            for turn in ("empty cache", "once more"):
                out = [str(Path(folder) / turn)] * (arguments[-1] == "--out")
                taken = profile(processes, COMMAND_LINE, arguments + out)
                print(row(f"{name}: {what}, {turn}", taken), flush=True)
        for policy in ("tracker", "thompson"):
            for turn in ("empty cache", "once more"):
                taken = profile(processes, AGENT.format(policy=policy), [])
                print(row(f"{name}: an agent's first pair, {policy}, {turn}", taken), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("revision", nargs="?", default=OLD, help="the older one, as git knows it")
    revision = parser.parse_args().revision
    print(f"| seconds | {' | '.join(COLUMNS)} |\n| {' | '.join(['---'] * (len(COLUMNS) + 1))} |")
    with tree_of(revision) as old:
        table(old, revision)
    table(ROOT, "today")


if __name__ == "__main__":
    sys.exit(main())
