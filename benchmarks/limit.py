"""The limit: one step of the Recurrent Bandit as limit.c does it, and proof that it does it.

`-fno-math-errno` lets the compiler take square roots eight at a time; it changes no number. How the
reciprocals are computed is chosen when it is compiled: limit.c says more.
"""

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("limit.c")
FLAGS = ["-O3", "-march=native", "-fno-math-errno"]
EXACT = DIVIDE, NEWTON = "DIVIDE", "NEWTON"  # ways of computing the same
FREE = "FREE"  # without roots and reciprocals: something else, at the least cost
HIDDEN, GATES, ARMS = 128, 384, 10
RATE, DECAY, EPSILON = 0.001, 0.99, 1e-8
RUNS = 4  # that our simulator takes forward together

WEIGHTS = np.dtype(
    [
        *((name, "f4", (HIDDEN, GATES)) for name in ("recurrent1", "input2", "recurrent2")),
        *((name, "f4", GATES) for name in ("input1", "bias_input1", "bias_hidden1")),
        *((name, "f4", GATES) for name in ("bias_input2", "bias_hidden2")),
        ("output", "f4", (ARMS, HIDDEN)),
        ("bias_output", "f4", ARMS),
    ]
)
RUN = np.dtype(
    [
        ("weights", WEIGHTS),
        ("squares", WEIGHTS),
        ("hidden1", "f4", HIDDEN),
        ("hidden2", "f4", HIDDEN),
    ]
)


@cache
def compiled(way: str) -> ctypes.CDLL:
    """limit.c as a library; compiled into a folder that is gone once it is loaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("the limit needs a C compiler (cc), found none")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "limit.so"
        command = [
            compiler,
            *FLAGS,
            f"-D{way}",
            "-shared",
            "-fPIC",
            str(SOURCE),
            "-o",
            str(library),
            "-lm",
        ]
        subprocess.run(command, check=True)
        limit = ctypes.CDLL(str(library))
    limit.run_bytes.restype = ctypes.c_size_t
    limit.simulate.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    if limit.run_bytes() != RUN.itemsize:
        raise RuntimeError(f"a run has {limit.run_bytes()} bytes in C, {RUN.itemsize} here")
    return limit


def fresh(runs: int, seed: int = 0) -> np.ndarray:
    """Runs before their first step: uniform weights as PyTorch's, empty second moments."""
    states = np.zeros(runs, RUN)
    rng, bound = np.random.default_rng(seed), HIDDEN**-0.5
    for name in WEIGHTS.names:
        field = states["weights"][name]
        field[...] = rng.uniform(-bound, bound, field.shape)
    return states


def proceed(states: np.ndarray, steps: int, way: str) -> None:
    compiled(way).simulate(states.ctypes.data, len(states), steps)


def contestant(runs: int, way: str) -> Callable[[int], None]:
    """Takes a number of steps of every run."""
    states = fresh(runs)
    return lambda steps: proceed(states, steps, way)


def squash(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.abs(x))


def layer(sums: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gates = squash(sums)
    first, second, third = gates.reshape(3, HIDDEN)
    return gates, (hidden + first * second + third) / 2


def numpy_step(run: dict[str, Any]) -> None:
    """The same step in NumPy and float64."""
    w, h1, h2 = run["weights"], run["hidden1"], run["hidden2"]
    sums = w["input1"] + w["bias_input1"] + w["bias_hidden1"] + h1 @ w["recurrent1"]
    gates1, next1 = layer(sums, h1)
    sums = w["bias_input2"] + w["bias_hidden2"] + next1 @ w["input2"] + h2 @ w["recurrent2"]
    gates2, next2 = layer(sums, h2)
    d_out = squash(w["output"] @ next2 + w["bias_output"]) - 0.5 * (np.arange(ARMS) == 0)
    d2 = np.tile(d_out @ w["output"], 3) * (1 - np.abs(gates2))
    d1 = np.tile(w["input2"] @ d2, 3) * (1 - np.abs(gates1))
    gradients = {
        "recurrent1": np.outer(h1, d1),
        "input2": np.outer(next1, d2),
        "recurrent2": np.outer(h2, d2),
        **dict.fromkeys(("input1", "bias_input1", "bias_hidden1"), d1),
        **dict.fromkeys(("bias_input2", "bias_hidden2"), d2),
        "output": np.outer(d_out, next2),
        "bias_output": d_out,
    }
    for name, g in gradients.items():
        square = DECAY * run["squares"][name] + (1 - DECAY) * g**2
        run["squares"][name] = square
        w[name] = w[name] - RATE * g / (np.sqrt(square) + EPSILON)
    run["hidden1"], run["hidden2"] = next1, next2


def as_float64(state: np.void) -> dict[str, Any]:
    return {
        name: as_float64(state[name]) if state[name].dtype.names else state[name].astype(float)
        for name in state.dtype.names
    }


def check(way: str, steps: int = 20) -> float:
    """Largest difference of a weight from NumPy's after some steps of two runs; or raises."""
    states = fresh(2)
    ours = [as_float64(state) for state in states]
    proceed(states, steps, way)
    for run in ours:
        for _ in range(steps):
            numpy_step(run)
    worst = max(
        float(np.abs(run["weights"][name] - state["weights"][name]).max())
        for run, state in zip(ours, states, strict=True)
        for name in WEIGHTS.names
    )
    if not worst < RATE / 10:
        raise AssertionError(f"limit.c is off by {worst} after {steps} steps")
    return worst


def main() -> None:
    for way in EXACT:
        print(f"{way}: largest difference from NumPy {check(way):.1e}")
    for way in (*EXACT, FREE):
        take, steps = contestant(RUNS, way), 1000
        take(steps)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            take(steps)
            times.append((time.perf_counter() - begin) / (steps * RUNS) * 1e6)
        print(f"{way}: {sorted(times)[2]:.1f} us per step and run (lowest {min(times):.1f})")


if __name__ == "__main__":
    main()
