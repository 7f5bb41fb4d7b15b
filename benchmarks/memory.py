"""Peak memory of one simulation, in a process of its own: python -m benchmarks.memory 100000."""

import json
import resource
import subprocess
import sys
import time

RUNS = 10


def peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measured(horizon: int, policy: str = "recurrent") -> dict[str, float]:
    """Megabytes and seconds of a child process."""
    command = [sys.executable, "-m", "benchmarks.memory", str(horizon), policy]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main() -> None:
    from driftbandits import simulate

    horizon, policy = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "recurrent"
    begin = said = time.perf_counter()

    def progress(done: int, total: int) -> None:
        nonlocal said
        now = time.perf_counter()
        if now - said > 15 and done:
            said = now
            left = (now - begin) * (total / done - 1)
            print(f"  {done / total:4.0%}, {left:.0f} s left", file=sys.stderr, flush=True)

    simulate(policy, "sinusoidal", horizon=horizon, runs=RUNS, progress=progress)
    seconds = time.perf_counter() - begin
    print(json.dumps({"megabytes": peak_megabytes(), "seconds": seconds}))


if __name__ == "__main__":
    main()
