"""The paper's policies on its problems, beside the numbers that prototypes of them reached.

Writes docs/numbers.md. Finished runs are kept in results/numbers, so that an interrupted call goes
on where it was; remove the folder to measure everything anew.
"""

from pathlib import Path
from typing import NamedTuple

from rich.progress import track

from driftbandits import Results, compare
from driftbandits.console import keep_compiled_programs

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "numbers.md"
KEPT = ROOT / "results" / "numbers"
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


def measure(case: Case, out: Path | None = None) -> Results:
    return compare(
        [case.policy],
        case.environment,
        horizon=case.horizon,
        runs=case.runs,
        measure=case.measure,
        out=out,
    )


def row(case: Case) -> str:
    """One line of the table."""
    mean, low, high = measure(case, KEPT).final()[case.policy]
    print(f"{case.environment}, {case.policy}: {mean:,.0f}", flush=True)
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
    keep_compiled_programs()
    rows = [row(case) for case in track(CASES, "measuring")]
    TARGET.write_text(HEAD + "\n".join(rows) + "\n")
    print(f"written: {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
