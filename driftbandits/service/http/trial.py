"""A trial of a bandit's settings before it is created or grows.

A worker serves all of its bandits on one thread. So what would keep the others waiting for long is
refused: first by the sizes that are asked for, before anything is compiled, then by the time that a
decision and its reward take. The library itself has no such limits.
"""

import time
from typing import Any

import jax
import numpy as np

from driftbandits import check
from driftbandits.agents import checks, requests
from driftbandits.agents.admission import DecisionBatch
from driftbandits.agents.decision_book import DecisionBook, spec_of
from driftbandits.agents.programs import blank_state
from driftbandits.agents.setting_checks import checked_settings
from driftbandits.agents.settings import AgentSettings
from driftbandits.choice import Choice, parse, with_defaults
from driftbandits.logs.replay import new_book
from driftbandits.policies import POLICIES, build_policy
from driftbandits.service import errors

SLOWEST = 0.1  # seconds of a decision and its reward
ROUNDS = 3  # of which the quickest counts, as the machine may be busy
LARGEST = {  # what a policy's settings may be
    "layers": 8, "hidden": 1024, "waves": 256, "batch": 4096, "train_steps": 1000,
    "memory": 100_000, "window": 100_000, "longest": 100_000, "warm_up": 100_000,
}  # fmt: skip
LONGEST_LIST = 64  # in a policy's settings
LARGEST_STATE = 64_000_000  # bytes that a policy remembers


def try_out(config: dict[str, Any]) -> None:
    """Refuses settings that no bandit can have, and compiles what one with these will need."""
    check_sizes(config)
    policy = config.get("policy", AgentSettings().policy)
    new_book(config, remember=0).learner.warm_up()
    book = busy_book(config, policy)
    for number in range(ROUNDS):
        taken = seconds_of_pair(book, str(number))
        if taken <= SLOWEST:
            return
        if taken > 10 * SLOWEST:
            break
    rule = f"so few for {policy} that a decision and its reward take no more than "
    rule += f"{SLOWEST:g} seconds"
    names, got = sizes(book)
    raise errors.bad_value(f"{names} must be {rule}, got {got}")


def sizes(book: DecisionBook) -> tuple[str, str]:
    """What makes a bandit slow, and how much of it there is."""
    spec = book.learner.spec
    found = {"arms": f"room for {len(book.arms.names)} arms"}
    if spec.context_dim:
        found["context"] = f"{spec.context_dim} columns of the context"
    if spec.arm_dim:
        found["features"] = f"{spec.arm_dim} of features"
    return ", ".join(found), ", ".join(found.values())


def check_sizes(config: dict[str, Any]) -> None:
    """Checks sizes before anything is compiled, which could take hours."""
    given = {name: value for name, value in config.items() if name != "arms"}
    settings = checked_settings(AgentSettings(**given))
    checks.names("arms", list(config["arms"]))
    for name, value in parse("policy", settings.policy).settings.items():
        if isinstance(value, list | tuple) and len(value) > LONGEST_LIST:
            check.fail(name, f"a list of at most {LONGEST_LIST} values", f"{len(value)} values")
        if name in LARGEST and check.is_integer(value):
            check.integer(at_least=value, at_most=LARGEST[name], **{name: value})
    if not config["arms"]:
        return  # which `new_book` refuses
    policy = build_policy(settings.policy, spec_of(settings, len(config["arms"])))
    leaves = jax.tree.leaves(blank_state(policy))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    if size > LARGEST_STATE:
        rule = f"one that remembers at most {LARGEST_STATE // 10**6} MB with these arms and this "
        rule += "context (take fewer of them, or smaller settings)"
        check.fail("policy", rule, f"{settings.policy}: {size // 10**6} MB")


def busy_book(config: dict[str, Any], policy: str) -> DecisionBook:
    """A bandit that does at each reward what it would do now and then, with a full memory."""
    choice = with_defaults(parse("policy", policy), POLICIES)
    at_once = {name: 1 for name in choice.settings if name.endswith("_every")}
    busy = str(Choice(choice.name, {**parse("policy", policy).settings, **at_once}))
    busy = busy if at_once else policy  # whose programs are there already
    book = new_book({**config, "policy": busy}, remember=0)
    book.learner.warm_up()
    state = book.learner.state()
    for name, seen in state.items():
        if name.endswith(".memory.seen"):
            size = state[name.removesuffix("seen") + "rewards"].size
            state[name] = np.full_like(seen, size - 1)
    book.learner.set_state(state, 0)
    return book


def seconds_of_pair(book: DecisionBook, id: str) -> float:
    """How long a decision and its reward take; it brings the features of all arms, if any."""
    example = book.features.vectors.example() if book.features.vectors.width else None
    own = None if example is None else dict.fromkeys(book.arms.names, example)
    batch, begin = DecisionBatch({}, {}), time.perf_counter()
    book.admit(batch, [id], [requests.Request(book.contexts.example(), arms=own)])
    book.decide(batch.new)
    book.settle([id], [0.0])
    return time.perf_counter() - begin
