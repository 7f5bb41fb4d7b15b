"""The paper's policies on its problems, beside the numbers that prototypes of them reached.

Writes docs/numbers.md. `python -m benchmarks.numbers --runs 20 [--only wheel]`
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

from driftbandits import Comparison, compare
from driftbandits.console import keep_compiled_programs

TARGET = Path(__file__).parents[1] / "docs" / "numbers.md"
INFINITY = float("inf")


class Case(NamedTuple):
    environment: str
    policy: str
    low: float  # the range in which the mean should lie
    high: float
    horizon: int = 10_000
    measure: str = "regret"


def rotting(policy: str, low: float, high: float) -> Case:
    return Case("rotting", policy, low, high, 30_000, "policy_regret")


CASES = [
    Case("bernoulli", "recurrent", 100, 250),
    Case("bernoulli", "thompson", 40, 60),
    Case("sinusoidal", "recurrent", 450, 650),
    Case("sinusoidal", "recurrent(energy=0)", 650, INFINITY),
    Case("sinusoidal", "thompson", 1350, 1650),
    Case("bernoulli(max_consecutive=10)", "recurrent", 700, 1000),
    Case("sinusoidal(max_consecutive=10)", "recurrent", 1250, 1550),
    Case("wheel", "recurrent", 45_000, 80_000),
    Case("wheel", "lin_ts", 5000, 9000),
    Case("wheel", "neural_linear", 5000, 12_000),
    Case("rotating_wheel", "recurrent", 130_000, 190_000),
    Case("rotating_wheel", "neural_linear", 240_000, 280_000),
    rotting("recurrent(dropout=0)", 150, 280),
    rotting("swa", 30, 60),
    rotting("fewa", 35, 60),
    rotting("thompson", 2100, 2250),
]


def measure(case: Case, runs: int) -> Comparison:
    return compare(
        [case.policy],
        case.environment,
        horizon=case.horizon,
        runs=runs,
        measure=case.measure,
    )


def row(case: Case, runs: int) -> str:
    """One measured line of the table."""
    begin = time.perf_counter()
    final = measure(case, runs).final()[case.policy]
    inside = "yes" if case.low <= final.mean <= case.high else "**no**"
    expected = f"above {case.low:,}" if case.high == INFINITY else f"{case.low:,} to {case.high:,}"
    print(
        f"{time.perf_counter() - begin:6.0f} s  {case.environment} {case.policy}: {final.mean:,.0f}"
    )
    return (
        f"| `{case.environment}` | `{case.policy}` | {case.measure} | {case.horizon:,} "
        f"| {final.mean:,.0f} | {final.low:,.0f} to {final.high:,.0f} | {expected} | {inside} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="environments that contain this")
    arguments = parser.parse_args()
    keep_compiled_programs()
    cases = [case for case in CASES if arguments.only in case.environment]
    lines = [
        "# Reference numbers",
        "",
        f"Mean over {arguments.runs} runs at the horizon with its 95% bootstrap interval, seed 0,",
        "and the range that prototypes of the same algorithms had led us to expect.",
        "Made by `make numbers`.",
        "",
        "| environment | policy | measure | horizon | mean | 95% interval | expected | inside |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(case, arguments.runs) for case in cases]
    if not arguments.only:
        TARGET.write_text("\n".join(lines) + "\n")
        print(f"written: {TARGET}")


if __name__ == "__main__":
    main()
