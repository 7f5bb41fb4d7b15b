"""The paper's policies on its problems, beside the numbers that prototypes of them reached.

Writes docs/numbers.md. Finished rows are kept in results/numbers.json, so that an interrupted call
goes on where it was; `--fresh` measures everything anew.
"""

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

from driftbandits import Comparison, compare
from driftbandits.console import keep_compiled_programs

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "numbers.md"
KEPT = ROOT / "results" / "numbers.json"
INFINITY = float("inf")


class Case(NamedTuple):
    environment: str
    policy: str
    low: float  # the range in which the mean should lie
    high: float
    runs: int = 20
    horizon: int = 10_000
    measure: str = "regret"


def rotting(policy: str, low: float, high: float, runs: int = 20) -> Case:
    return Case("rotting", policy, low, high, runs, 30_000, "policy_regret")


CASES = [
    Case("bernoulli", "recurrent", 100, 250),
    Case("bernoulli", "thompson", 40, 60, 192),
    Case("sinusoidal", "recurrent", 450, 650),
    Case("sinusoidal", "recurrent(energy=0)", 650, INFINITY),
    Case("sinusoidal", "thompson", 1350, 1650, 192),
    Case("bernoulli(max_consecutive=10)", "recurrent", 700, 1000),
    Case("sinusoidal(max_consecutive=10)", "recurrent", 1250, 1550),
    Case("wheel", "recurrent", 45_000, 80_000),
    Case("wheel", "lin_ts", 5000, 9000, 192),
    Case("wheel", "neural_linear", 5000, 12_000),
    Case("rotating_wheel", "recurrent", 130_000, 190_000),
    Case("rotating_wheel", "neural_linear", 240_000, 280_000),
    rotting("recurrent(dropout=0)", 150, 280),
    rotting("swa", 30, 60, 192),
    rotting("fewa", 45, 80, 192),  # prototypes of 3 to 5 runs said 43; the runs' tail is heavy
    rotting("thompson", 2100, 2250, 192),
]


def measure(case: Case) -> Comparison:
    return compare(
        [case.policy],
        case.environment,
        horizon=case.horizon,
        runs=case.runs,
        measure=case.measure,
    )


def measure_or_recall(case: Case, kept: dict[str, list[float]]) -> list[float]:
    """Mean, low and high of a case; measured only if it is not kept from an earlier call."""
    name = " ".join(map(str, (*case[:2], *case[4:])))
    if name not in kept:
        begin = time.perf_counter()
        kept[name] = [float(x) for x in measure(case).final()[case.policy]]
        print(f"{time.perf_counter() - begin:6.0f} s  {name}: {kept[name][0]:,.0f}", flush=True)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=2))
    return kept[name]


def row(case: Case, estimate: list[float]) -> str:
    """One line of the table."""
    mean, low, high = estimate
    inside = "yes" if case.low <= mean <= case.high else "**no**"
    expected = f"above {case.low:,}" if case.high == INFINITY else f"{case.low:,} to {case.high:,}"
    return (
        f"| `{case.environment}` | `{case.policy}` | {case.measure} | {case.horizon:,} "
        f"| {case.runs} | {mean:,.0f} | {low:,.0f} to {high:,.0f} | {expected} | {inside} |"
    )


HEAD = """\
# Reference numbers

Mean over the runs at the horizon with its 95% bootstrap interval, seed 0, and the range that
prototypes of the same algorithms had led us to expect. Made by `make numbers`.

| environment | policy | measure | horizon | runs | mean | 95% interval | expected | inside |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="policies whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    arguments = parser.parse_args()
    keep_compiled_programs()
    kept = {} if arguments.fresh or not KEPT.exists() else json.loads(KEPT.read_text())
    cases = [case for case in CASES if arguments.only in case.policy]
    rows = [row(case, measure_or_recall(case, kept)) for case in cases]
    if not arguments.only:
        TARGET.write_text(HEAD + "\n".join(rows) + "\n")
        print(f"written: {TARGET}")


if __name__ == "__main__":
    main()
