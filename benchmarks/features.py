"""What the features of arms cost: a simulated step, a pair of an agent, and the service's load.

The same policy without features, and Vowpal Wabbit with features of actions, take the same turns.
"""

import tempfile
from contextlib import ExitStack

import numpy as np

from benchmarks.measuring import Goal, Part, Series, as_series, ours, ratios
from benchmarks.measuring import take_turns as take_steps
from benchmarks.peers import version_of
from benchmarks.service import BATCH, ROOT, Turn, asking, service, take_turns, until
from driftbandits import Agent

NUM_ARMS, ARM_DIM, CONTEXT_DIM = 100, 20, 10
SERVED_FEATURES = SERVED_CONTEXT = 5  # of the ten arms in the service
POLICIES = ["lin_ucb", "d_lin_ucb", "lin_ts", "d_lin_ts", "sw_lin_ucb"]
SERVED = "d_lin_ucb"
WITH, WITHOUT = "with features", "without"
VW = "--cb_explore_adf --epsilon 0.05 -q CA --quiet"
VW_NAME = "Vowpal Wabbit in this process"


def simulated(short: bool) -> dict[str, list[float]]:
    """Microseconds per step and run, of one run."""
    size = f"num_arms={NUM_ARMS}, context_dim={CONTEXT_DIM}"
    environments = {WITH: f"shared_linear({size}, arm_dim={ARM_DIM})", WITHOUT: f"linear({size})"}
    horizon = 50 if short else 100
    return take_steps(
        {
            f"simulation, {policy}, {how}": ours(policy, environment, horizon, 4)
            for policy in POLICIES
            for how, environment in environments.items()
        }
    )


def agent(policy: str, has_features: bool) -> Turn:
    """An agent in this process, with the context as plain numbers."""
    rng = np.random.default_rng(0)
    rows = {f"arm{i}": rng.normal(size=ARM_DIM).tolist() for i in range(NUM_ARMS)}
    features = [f"f{i}" for i in range(ARM_DIM)] if has_features else None
    context = [f"x{i}" for i in range(CONTEXT_DIM)]
    bandit = Agent(rows if has_features else list(rows), context, policy, features=features)

    def step() -> int:
        made = bandit.decide(rng.random(CONTEXT_DIM).tolist())
        bandit.reward(made.id, float(rng.random() < 0.5))
        return 1

    return lambda seconds: until(seconds, step)


def vowpal_wabbit() -> Turn:
    """Epsilon-greedy over actions with features, crossed with the context."""
    from vowpalwabbit import Workspace

    workspace, rng = Workspace(VW), np.random.default_rng(0)
    values = rng.normal(size=(NUM_ARMS, ARM_DIM))
    actions = ["|A " + " ".join(f"f{i}:{x:.4f}" for i, x in enumerate(row)) for row in values]

    def step() -> int:
        row = enumerate(rng.random(CONTEXT_DIM).tolist())
        shared = "shared |C " + " ".join(f"x{i}:{x:.4f}" for i, x in row)
        probabilities = np.array(workspace.predict([shared, *actions]))
        arm = int(rng.choice(NUM_ARMS, p=probabilities / probabilities.sum()))
        labelled = actions.copy()
        labelled[arm] = f"0:{-float(rng.random() < 0.5)}:{probabilities[arm]} {actions[arm]}"
        workspace.learn([shared, *labelled])
        return 1

    return lambda seconds: until(seconds, step)


def in_process() -> dict[str, Turn]:
    turns = {VW_NAME: vowpal_wabbit()}
    for policy in POLICIES:
        for how in (WITH, WITHOUT):
            turns[f"Agent, {policy}, {how}"] = agent(policy, how == WITH)
    return turns


def served(stack: ExitStack) -> dict[str, Turn]:
    folder = stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "results"))
    serving, turns = stack.enter_context(service(folder)), {}
    for batch in (None, BATCH):
        for how, count in ((WITH, SERVED_FEATURES), (WITHOUT, 0)):
            size = f"batches of {batch}" if batch else "single"
            name = f"{how.replace(' ', '-')}-{batch}"
            turn = asking(serving, SERVED, batch, SERVED_CONTEXT, name, count)
            turns[f"service, {SERVED}, {how}, {size}"] = turn
    return turns


def features(short: bool) -> Part:
    (ROOT / "results").mkdir(exist_ok=True)
    steps = simulated(short)
    with ExitStack() as stack:
        turns = in_process() | served(stack)
        found = take_turns(turns, 1.0 if short else 3.0)
    busy = {name: [each["busy"] for each in repeats] for name, repeats in found.items()}
    pairs = {name: [each["pairs"] for each in repeats] for name, repeats in found.items()}
    series = as_series(steps)
    series += [Series(name, each, "us on the core per pair") for name, each in busy.items()]
    series += [Series(name, each, "pairs per second") for name, each in pairs.items()]
    both = [(name, name.replace(WITH, WITHOUT)) for name in [*steps, *busy] if WITH in name]
    goals = [
        Goal(
            f"{name}: times as long as {WITHOUT}",
            ratios((steps | busy)[name], (steps | busy)[other]),
        )
        for name, other in both
    ]
    goals += [
        Goal(f"{name}: times as long as {VW_NAME}", ratios(busy[name], busy[VW_NAME]))
        for name in busy
        if name.startswith("Agent") and WITH in name
    ]
    return Part("Arms with features", series, goals, notes())


def notes() -> list[str]:
    return [
        f"Simulations and agents: {NUM_ARMS} arms of {ARM_DIM} features, {CONTEXT_DIM} context "
        f"numbers, so that the shared model has {(1 + ARM_DIM) * (1 + CONTEXT_DIM)} weights; "
        f"without features each arm has its own model of {1 + CONTEXT_DIM} weights at most. 4 "
        "runs, one core.",
        f"The service: 10 arms of {SERVED_FEATURES} features, {SERVED_CONTEXT} context numbers.",
        f"Vowpal Wabbit {version_of('vowpalwabbit')}: `{VW}`, the features of all actions with "
        "each example; a linear model without confidence bounds.",
    ]
