"""The time of every policy without a network, on one core and on all."""

from benchmarks.measuring import CORES, Goal, Part, as_series, ours, ratios, take_turns
from driftbandits import POLICIES

INDEX_POLICIES = "ucb", "d_ucb", "sw_ucb"
NETWORKS = {"recurrent", "recurrent_linear", "neural_linear", "neural_ucb", "neural_ts"}
SLOW = {"fewa"}  # the exact version has its own curve in growth.py


def policies(short: bool) -> Part:
    names = [name for name in POLICIES if name not in NETWORKS | SLOW]
    horizon = 1000 if short else 20_000
    contestants = {}
    for name in names:
        contestants[name] = ours(name, environment(name), horizon, 100)
        contestants[on_all(name)] = ours(name, environment(name), horizon, 100 * CORES, CORES)
    times = take_turns(contestants)
    goals = [Goal(f"{name}: us per step and run", times[name], high=0.2) for name in INDEX_POLICIES]
    goals.append(Goal("thompson: us per step and run", times["thompson"], high=1))
    goals += [
        Goal(f"{on_all(name)}: times the speed on 1", ratios(times[name], times[on_all(name)]))
        for name in names
    ]
    return Part(
        f"Policies without a network: {horizon:,} steps of 100 runs per core, 1 core unless named",
        as_series(times),
        goals,
        [
            "On `bernoulli`, the linear ones on `wheel`. Of the indices, kl_ucb solves an equation "
            "per arm and step, and swa sums the window of the pulled arm anew in every step, so "
            "that rounding does not pile up; they have no goal."
        ],
    )


def on_all(policy: str) -> str:
    return f"{policy}, {CORES} cores"


def environment(policy: str) -> str:
    """A problem of the kind the policy is for; the paper's ten arms where it can be."""
    return "wheel" if "lin_" in policy else "bernoulli"
