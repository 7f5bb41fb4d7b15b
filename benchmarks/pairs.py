"""Single pairs in one process: a decision and its reward, one after the other, on one core.

Our Agent of this tree and of an older one, and ParetoBandit's router, each in a process of its own,
take turns.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.measuring import REPEATS, Goal, Part, Series, ratios
from benchmarks.peers import version_of
from benchmarks.revisions import ROOT, child, tree_of

BEFORE = "8303e06"  # 0.7.0
CASES = [("thompson", 0), ("tracker", 0), ("tracker", 20)]  # policy, context numbers
MOST = {0: 130, 20: 200}  # us, by context numbers
PARETO = "ParetoBandit"

CHILD = """
import json, logging, os, sys, time
import numpy as np

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
ARMS = [f"arm{i}" for i in range(10)]

def agent(policy, context):
    from driftbandits import Agent

    bandit = Agent(ARMS, [f"x{i}" for i in range(context)], policy)

    def step(row, coin):
        made = bandit.decide(row)
        bandit.reward(made.id, float(coin < int(made.arm[-1])))

    return step

def paretobandit(_, context):
    from pareto_bandit import BanditRouter
    from pareto_bandit.feature_service import FeatureService
    from pareto_bandit.storage import EphemeralContextStore

    logging.getLogger("pareto_bandit").setLevel(logging.ERROR)
    price = {"input_cost_per_m": 1.0, "output_cost_per_m": 1.0}
    router = BanditRouter.create(
        dict.fromkeys(ARMS, price), priors="none", bandit_seed=0,
        context_store=EphemeralContextStore(),
        feature_service=FeatureService.for_precomputed(context + 1),
    )

    def step(row, coin):
        arm, log = router.route(np.append(row, 1.0))
        router.process_feedback(log.request_id, float(coin < int(arm[-1])))

    return step

steps, rng = {}, np.random.default_rng(0)
for line in sys.stdin:
    kind, policy, context, pairs = json.loads(line)
    name = policy, context
    if name not in steps:
        steps[name] = (paretobandit if kind == "pareto" else agent)(policy, context)
        for _ in range(300):
            steps[name]([0.5] * context, 5.0)
    rows, coins = rng.random((pairs, context)).tolist(), (rng.random(pairs) * 10).tolist()
    begin = time.perf_counter()
    for row, coin in zip(rows, coins):
        steps[name](row, coin)
    print((time.perf_counter() - begin) / pairs * 1e6, flush=True)
"""

Ask = Callable[[str], float]


def take_turns(asks: dict[str, Ask], pairs: int) -> dict[str, list[float]]:
    """Of every case, all contestants in turn, several times."""
    found: dict[str, list[float]] = {}
    for policy, context in CASES:
        for repeat in range(REPEATS + 1):
            for who, ask in asks.items():
                name = named(who, policy, context)
                kind = "pareto" if who == PARETO else "agent"
                taken = ask(json.dumps([kind, policy, context, pairs]))
                if repeat:  # the first is to warm up
                    found.setdefault(name, []).append(taken)
                    print(f"  {repeat}/{REPEATS}  {taken:8.1f} us  {name}", flush=True)
    return found


def named(who: str, policy: str, context: int) -> str:
    numbers = f"{context} context numbers" if context else "no context"
    return f"{who}, {numbers}" if who == PARETO else f"{who}, {policy}, {numbers}"


def single_pairs(short: bool) -> Part:
    with ExitStack() as stack:
        old = stack.enter_context(tree_of(BEFORE))
        asks = {
            "Agent": stack.enter_context(child(CHILD, ROOT)),
            "Agent of 0.7.0": stack.enter_context(child(CHILD, old)),
            PARETO: stack.enter_context(child(CHILD, ROOT)),
        }
        found = take_turns(asks, 200 if short else 3000)
    goals = []
    for policy, context in CASES:
        now, before, pareto = (found[named(who, policy, context)] for who in asks)
        what = named("Agent", policy, context)
        goals.append(Goal(f"{what}: us per pair", now, high=MOST[context]))
        goals.append(Goal(f"{what}: times as long as 0.7.0", ratios(now, before)))
        goals.append(Goal(f"{what}: times as long as {PARETO}", ratios(now, pareto[-REPEATS:])))
    notes = [
        "Ten arms; each contestant has a process of its own on one and the same core.",
        f"{PARETO} {version_of('paretobandit')}: LinUCB with forgetting on the context numbers and "
        "a constant, in memory, without the probabilities of the arms. Ours are there to be read; "
        "those of thompson are integrated only then.",
    ]
    series = [Series(name, values, "us per pair") for name, values in found.items()]
    return Part("Single pairs: Agent on one core", series, goals, notes)
