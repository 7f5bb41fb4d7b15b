"""The time of every policy without a network, on one core and on all."""

from benchmarks.measuring import CORES, Goal, Part, as_series, ours, ratios, take_turns
from driftbandits import POLICIES

CLOSED_FORM = "ucb", "d_ucb", "sw_ucb"
NEURAL = {"recurrent", "recurrent_linear", "neural_linear", "neural_ucb", "neural_ts"}
ALL_WINDOWS = {"fewa", "raw_ucb", "glr_ucb"}  # exact, so a step costs the more the later it is


def policies(short: bool) -> Part:
    names = [name for name in POLICIES if name not in NEURAL | ALL_WINDOWS]
    horizon = 1000 if short else 20_000
    contestants = {}
    for name in names:
        contestants[name] = ours(name, environment(name), horizon, 100)
        contestants[on_all(name)] = ours(name, environment(name), horizon, 100 * CORES, CORES)
    times = take_turns(contestants)
    goals = [Goal(f"{name}: us per step and run", times[name], high=0.2) for name in CLOSED_FORM]
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
            "On `bernoulli`, the linear ones on `wheel`. The goal of 0.2 us is for indices that "
            "are a formula; others solve an equation per arm, look for changes, or sum windows. "
            f"Left out: {', '.join(sorted(ALL_WINDOWS))}, which look at all windows."
        ],
    )


def on_all(policy: str) -> str:
    return f"{policy}, {CORES} cores"


def environment(policy: str) -> str:
    """A problem of the kind the policy is for; the paper's ten arms where it can be."""
    return "wheel" if "lin_" in policy else "bernoulli"
