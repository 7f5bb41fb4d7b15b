"""Where the seconds before a result go, in this tree and in an older one.

`compare`, `reproduce --quick` and an agent's first pair, each in a process of its own: with an
empty cache, and once more, with `--jobs 1`. A stage's time is its own: what another stage does
inside it is counted there, and where two threads are busy, each counts half.
"""

import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.first_result import AGENT, COMMAND_LINE, OLD, OLD_NAME, POLICIES, Processes
from benchmarks.measuring import REPEATS, Grid, Part
from benchmarks.revisions import ROOT, tree_of

STAGES = ["import", "trace", "lower", "compile", "load", "run", "write", "rest", "all"]
TURNS = ["empty cache", "once more"]
QUICK = "reproduce --quick"
ONE_FIGURE = ["run", "paper/figure_1a", "--quick", "--runs", "2", "--horizon", "200"]

CHILD = """
import importlib._bootstrap, json, pathlib, sys, threading, time
begin = time.perf_counter()
spans = []  # thread, stage, start and end

def record(stage, start, end):
    spans.append((threading.get_ident(), stage, start, end))

def shared_out():
    '''Seconds by stage: those of the innermost stage of a thread, shared between busy threads.'''
    spent = dict.fromkeys(["import", "trace", "lower", "compile", "load", "run", "write"], 0.0)
    moments = [(span[2], 0, span) for span in spans] + [(span[3], 1, span) for span in spans]
    busy, before = {}, 0.0
    for moment, ends, span in sorted(moments):
        inner = [max(inside, key=lambda each: each[2]) for inside in busy.values() if inside]
        for each in inner:
            spent[each[1]] += (moment - before) / len(inner)
        inside, before = busy.setdefault(span[0], []), moment
        inside.remove(span) if ends else inside.append(span)
    return spent

def timed(stage, function):
    def call(*arguments, **named):
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            record(stage, start, time.perf_counter())
    return call

WRITERS = {
    "polars": ["DataFrame.write_parquet", "DataFrame.write_csv"],
    "matplotlib.figure": ["Figure.savefig"],
}

def watched(find):
    '''Imports, and functions that write are timed as soon as their module is there.'''
    def call(*arguments, **named):
        found = find(*arguments, **named)
        for name in [name for name in WRITERS if hasattr(sys.modules.get(name), "__version__")
                     or name in sys.modules and hasattr(sys.modules[name], "Figure")]:
            for path in WRITERS.pop(name):
                kind, method = path.split(".")
                owner = getattr(sys.modules[name], kind)
                setattr(owner, method, timed("write", getattr(owner, method)))
        return found
    return call

importlib._bootstrap._find_and_load = timed("import", watched(importlib._bootstrap._find_and_load))
for method in ("write_bytes", "write_text"):
    setattr(pathlib.Path, method, timed("write", getattr(pathlib.Path, method)))
import jax, jax.monitoring, jax.experimental.serialize_executable as stored
from jax._src.interpreters.pxla import ExecuteReplicated

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
    "/jax/compilation_cache/cache_retrieval_time_sec": "load",
}

def listen(event, seconds, **_):
    if event in EVENTS:
        end = time.perf_counter()
        record(EVENTS[event], end - seconds, end)

jax.monitoring.register_event_duration_secs_listener(listen)
jax.stages.Compiled.__call__ = timed("run", jax.stages.Compiled.__call__)
ExecuteReplicated.__call__ = timed("run", ExecuteReplicated.__call__)
stored.deserialize_and_load = timed("load", stored.deserialize_and_load)
try:
    exec(sys.argv.pop(1))
except SystemExit as stopped:
    assert not stopped.code, stopped.code
took, spent = time.perf_counter() - begin, shared_out()
spent |= {"rest": took - sum(spent.values()), "all": took}
print("\\n" + json.dumps(spent))
"""


def profile(processes: Processes, code: str, arguments: list[str]) -> dict[str, float]:
    """Seconds by stage."""
    printed = processes.run("-c", CHILD, code, *arguments, stdout=subprocess.PIPE).stdout
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


def commands(short: bool) -> dict[str, tuple[str, list[str], int]]:
    """What is profiled: code, arguments and how often."""
    repeats = 1 if short else REPEATS
    quick = ONE_FIGURE if short else ["reproduce", "--quick"]
    small = ["--horizon", "50"] if short else []
    found = {
        "compare": (COMMAND_LINE, ["compare", "-j", "1", *small], repeats),
        QUICK: (COMMAND_LINE, [*quick, "-j", "1", "--out"], 1),
    }
    for policy in POLICIES:
        found[f"an agent's first pair, {policy}"] = AGENT.format(policy=policy), [], repeats
    return found


def profiles(short: bool) -> Part:
    """A table for each command: stages, in both trees."""
    grids = []
    with tempfile.TemporaryDirectory() as folder, tree_of(OLD) as old:
        trees = {OLD_NAME: Processes(old, Path(folder) / "old")}
        trees["today"] = Processes(ROOT, Path(folder) / "today")
        for processes in trees.values():  # bytecode is there from here
            processes.run("-c", COMMAND_LINE, "compare", "--horizon", "50")
            processes.run("-c", COMMAND_LINE, *ONE_FIGURE, "--out", str(processes.cache / "warm"))
            processes.run("-c", AGENT.format(policy="thompson"))
        for what, (code, arguments, repeats) in commands(short).items():
            cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
            for repeat in range(repeats):
                for tree, processes in trees.items():
                    processes.forget()
                    for turn in TURNS:
                        out = Path(folder) / f"{tree} {turn} {repeat}"
                        given = arguments + [str(out)] * (arguments[-1:] == ["--out"])
                        for stage, seconds in profile(processes, code, given).items():
                            cells[stage][f"{tree}, {turn}"].append(seconds)
                        print(f"  {what}, {tree}, {turn}", flush=True)
            rows = {stage: dict(cells[stage]) for stage in STAGES}
            grids.append(Grid(f"{what}, {times(repeats)}", "seconds", rows))
    return Part("Where the first seconds go", notes=NOTES, grids=grids)


def times(repeats: int) -> str:
    return "once" if repeats == 1 else f"medians of {repeats}"


NOTES = [
    "trace, lower and compile are JAX's and XLA's way to a program; load reads a program from the "
    "cache; write is Parquet, CSV, pictures and other files; rest is Python's own start of the "
    "command, planning, judging and printing.",
    f"{OLD_NAME} stored no programs of agents. Its `{QUICK}` ran fewer and shorter runs.",
]
