"""The time of `tracker` beside `ucb`, its first version, and itself without waves."""

import time

from benchmarks.measuring import Contestant, Goal, Part, Series, Times, ours, ratios, take_turns
from driftbandits import build_environment, build_policy
from driftbandits.simulation.engine import block_width

UCB, TEN, FIFTY = "ucb, 10 arms", "tracker, 10 arms", "tracker, 50 arms"
WAVES = "tracker, 10 arms, context of 5"
NO_WAVES = "tracker(waves=0), 10 arms, context of 5"
FIRST, FIRST_WAVES = "tracker(version=1), 10 arms", "tracker(version=1), 10 arms, context of 5"


def one_block(policy: str, environment: str, horizon: int) -> Contestant:
    """As many runs as our simulator takes forward together."""
    runs = block_width(build_policy(policy, build_environment(environment).spec))
    return ours(policy, environment, horizon, runs)


def noting(contestant: Contestant, into: list[float]) -> Contestant:
    """The same, which also notes the time that the process had a core."""

    def take() -> None:
        begin = time.process_time()
        contestant.take()
        into.append((time.process_time() - begin) / contestant.steps * 1e6)

    return Contestant(take, contestant.steps)


def tracker(short: bool) -> Part:
    """One core; the goal is for ten arms without a context."""
    horizon = 500 if short else 10_000
    fewer = horizon // 20
    contestants = {
        UCB: one_block("ucb", "bernoulli", horizon),
        TEN: one_block("tracker", "bernoulli", horizon),
        FIRST: one_block("tracker(version=1)", "bernoulli", horizon),
        FIFTY: one_block("tracker", "bernoulli(num_arms=50)", fewer),
        NO_WAVES: one_block("tracker(waves=0)", "linear", fewer),
        WAVES: one_block("tracker", "linear", fewer),
        FIRST_WAVES: one_block("tracker(version=1)", "linear", fewer),
    }
    busy: Times = {name: [] for name in contestants}
    times = take_turns({name: noting(c, busy[name]) for name, c in contestants.items()})
    busy = {name: values[1:] for name, values in busy.items()}  # the first is the warming up
    series = [Series(name, values) for name, values in times.items()]
    series += [Series(f"{name}: time on the core", values) for name, values in busy.items()]
    notes = [
        f"On `bernoulli` and, with a context, `linear`; {horizon:,} steps of ten arms without a "
        f"context, {fewer:,} of the others.",
        "Time on the core leaves out the time that other processes had it; ratios are of that.",
    ]
    return Part("The tracker: one block of runs, 1 core", series, goals(times, busy), notes)


def goals(times: Times, busy: Times) -> list[Goal]:
    def ratio(slower: str, faster: str) -> Goal:
        return Goal(f"{slower}: times as long as {faster}", ratios(busy[slower], busy[faster]))

    return [
        Goal(f"{TEN}: us per step and run", times[TEN], high=5),
        Goal(f"{TEN}: us on the core per step and run", busy[TEN]),
        ratio(TEN, UCB),
        ratio(FIFTY, TEN),
        ratio(NO_WAVES, TEN),
        ratio(WAVES, NO_WAVES),
        Goal(f"{TEN}: times as long as its first version", ratios(busy[TEN], busy[FIRST]), high=3),
        Goal(
            f"{WAVES}: times as long as its first version",
            ratios(busy[WAVES], busy[FIRST_WAVES]),
            high=2,
        ),
    ]
