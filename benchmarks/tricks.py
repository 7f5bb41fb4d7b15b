"""What each trick for speed is worth: the same simulation with and without it.

Every measurement is a process of its own, as in
python -m benchmarks.tricks "Threefry written out" without.
"""

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.measuring import CORES, REPEATS, Goal, Part, Series, ratios


class Trick(NamedTuple):
    policy: str
    environment: str
    horizon: int
    runs: int  # per core
    cores: int
    undo: Callable[[], None]  # before anything is compiled


def replace(module: str, name: str, value: object) -> None:
    setattr(importlib.import_module(module), name, value)


def several_threads() -> None:
    replace("driftbandits.simulation.devices", "POOL_THREADS", CORES)


def one_client() -> None:
    import jax

    from driftbandits.simulation.devices import agents_device

    @contextmanager
    def shared_device() -> Iterator[None]:
        with jax.default_device(agents_device()):
            yield

    replace("driftbandits.simulation.engine", "own_device", shared_device)


def keys_of_jax() -> None:
    import jax

    replace("driftbandits.simulation.engine", "key", jax.random.key)


def bits_in_every_reader() -> None:
    replace("driftbandits.numerics.random_keys", "computed_once", lambda make: make())


def sampler_of_jax() -> None:
    import jax

    replace("driftbandits.numerics.bernoulli_thompson", "sample_log_gamma", jax.random.loggamma)


def divisions() -> None:
    replace("driftbandits.numerics.rmsprop", "reciprocal", lambda x: 1 / x)


def copied_weights() -> None:
    from driftbandits.simulation.compiling import OPTIONS

    OPTIONS["xla_cpu_copy_insertion_use_region_analysis"] = False


def all_runs_at_once() -> None:
    import jax

    jax.custom_batching.sequential_vmap = lambda function: function  # type: ignore[assignment]


NEURAL = "recurrent", "sinusoidal", 500, 4
TRICKS = {
    "one thread in XLA's pool": Trick(*NEURAL, CORES, several_threads),
    "an XLA client per core: lin_ts": Trick("lin_ts", "wheel", 5000, 100, CORES, one_client),
    "an XLA client per core: thompson": Trick(
        "thompson", "sinusoidal(max_consecutive=10)", 5000, 100, CORES, one_client
    ),
    "an XLA client per core: neural_linear": Trick(
        "neural_linear", "wheel", 400, 8, CORES, one_client
    ),
    "Threefry written out": Trick("ucb", "bernoulli", 5000, 100, 1, keys_of_jax),
    "random bits computed once": Trick("ucb", "bernoulli", 5000, 100, 1, bits_in_every_reader),
    "Marsaglia and Tsang for a block": Trick("thompson", "bernoulli", 5000, 100, 1, sampler_of_jax),
    "reciprocals by Newton's iteration": Trick(*NEURAL, 1, divisions),
    "no copy of the weights": Trick(*NEURAL, 1, copied_weights),
    "training run by run": Trick("neural_linear", "wheel", 400, 8, 1, all_runs_at_once),
}


def microseconds(name: str, without: bool) -> list[float]:
    """Per step and run, of this process."""
    trick = TRICKS[name]
    if without:
        trick.undo()
    from driftbandits import simulate

    times = []
    for repeat in range(REPEATS + 1):
        begin = time.perf_counter()
        simulate(
            trick.policy,
            trick.environment,
            horizon=trick.horizon,
            runs=trick.runs * trick.cores,
            seed=repeat,
            cores=trick.cores,
        )
        steps = trick.horizon * trick.runs * trick.cores
        times.append((time.perf_counter() - begin) / steps * 1e6)
    return times[1:]  # the first one compiled


def in_child(name: str, how: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.tricks", name, how]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def tricks(short: bool) -> Part:
    """How much slower it is without each."""
    part = Part("What the tricks are worth")
    for name, trick in list(TRICKS.items())[: 2 if short else None]:
        with_it, without = in_child(name, "with"), in_child(name, "without")
        where = f"{trick.policy}, {trick.cores} core{'s' * (trick.cores > 1)}"
        part.series += [Series(f"{where}: with {name}", with_it)]
        part.series += [Series(f"{where}: without", without)]
        part.goals.append(Goal(f"{name} ({where}): slower without it", ratios(without, with_it)))
        print(f"  {part.goals[-1].what}: {sorted(part.goals[-1].values)[REPEATS // 2]:.2f}")
    part.notes.append(
        "With and without are processes of their own, one after the other, so these ratios are of "
        "times some seconds apart."
    )
    return part


if __name__ == "__main__":
    print(json.dumps(microseconds(sys.argv[1], sys.argv[2] == "without")))
