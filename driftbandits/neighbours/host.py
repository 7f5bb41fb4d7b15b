"""The loop in Python: policies and worlds that are not made of JAX, in the runs of `simulate`.

A policy of ours in an environment of ours goes to `simulate`, which is much faster. An external
one in an environment of ours pulls in all runs at once, so that a step of their worlds is one
compiled call. A foreign world is visited run by run; run r starts with the seed `seed + r`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Policy, PyTree, State
from driftbandits.environments import build_environment
from driftbandits.keys import key
from driftbandits.neighbours.external import ExternalPolicy, Player, player_of
from driftbandits.neighbours.visits import ForeignWorld, Visit
from driftbandits.neighbours.worlds import Runs
from driftbandits.policies import build_policy
from driftbandits.simulation import (
    CHUNK,
    POINTS,
    WIDEST,
    Keys,
    Progress,
    block_keys,
    count_steps,
    ignore,
    simulate,
)
from driftbandits.traces import Trace, add_up, join, refuse_broken


def simulate_external(
    policy: ExternalPolicy | Policy | str,
    environment: Environment | str | ForeignWorld,
    *,
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    record_every: int | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Lets any policy pull in any world, on the worlds of `simulate` where these are ours.

    Where nobody knows the means of a foreign world, the regrets of the trace are NaN.

    Args:
        policy: what `external_policy` gives, or a policy of ours, or its name with settings.
        environment: an environment of ours, or its name, or what `from_gymnasium` gives.
        horizon: pulls per run.
        runs: independent repetitions; more of them do not change the first ones.
        seed: of everything random.
        record_every: steps between recorded times; None keeps about a thousand times.
        progress: called with the steps done and the steps to do.
    """
    check.whole(horizon=horizon, runs=runs)
    check.whole(seed=seed, at_least=0)
    if isinstance(environment, str):
        environment = build_environment(environment)
    every = -(-horizon // POINTS) if record_every is None else record_every
    check.whole(record_every=every)
    if isinstance(environment, Environment) and not isinstance(policy, ExternalPolicy):
        size: Any = {"horizon": horizon, "runs": runs, "record_every": every}
        return simulate(policy, environment, seed=seed, progress=progress, **size)
    width = WIDEST if isinstance(environment, Environment) else 1
    blocks = [range(runs)[first : first + width] for first in range(0, runs, width)]
    moved = count_steps(horizon * len(blocks), progress or ignore)
    traces = []
    for block in blocks:
        players = players_of(policy, environment.spec._replace(horizon=horizon), seed, block)
        worlds = worlds_of(environment, seed, block, every, points=-(-horizon // every))
        play(players, worlds, block, horizon, moved)
        record = worlds.records()
        if isinstance(environment, Environment):
            refuse_broken(record, block.start)
        traces.append(add_up([record], horizon, every))
    return join(traces)


def worlds_of(
    environment: Environment | ForeignWorld, seed: int, block: range, every: int, points: int
) -> Runs | Visit:
    if isinstance(environment, Environment):
        return Runs(environment, seed, block, every, points)
    return Visit(environment, seed, block.start, every, points)


def players_of(
    policy: ExternalPolicy | Policy | str, spec: BanditSpec, seed: int, block: range
) -> list[Player]:
    """A policy for each run, whose randomness is the run's own."""
    keys = block_keys(key(seed), len(block), block.start)
    if isinstance(policy, ExternalPolicy):
        return [player_of(policy, spec, own) for own in seeds_of(keys).tolist()]
    mind = build_policy(policy, spec) if isinstance(policy, str) else policy
    if mind.sees_means:
        check.fail("policy", "one that does not see the means, in a foreign world", policy)
    return [OurPlayer(mind, spec.num_arms, keys)]


@jax.jit
def seeds_of(keys: Keys) -> Array:
    """A whole number of its own for every run."""
    return jax.vmap(lambda own: jax.random.randint(own, (), 0, 2**31 - 1))(keys.policy_start)


def play(
    players: Sequence[Player],
    worlds: Runs | Visit,
    block: range,
    horizon: int,
    moved: Callable[[int], None],
) -> None:
    """Every player pulls in its own run, up to the horizon, and is told when a reward is due."""
    due: defaultdict[int, list[Callable[[], None]]] = defaultdict(list)
    for time in range(horizon):
        seen = worlds.news
        arms = [
            chosen(player, context, available)
            for player, context, available in zip(
                players, seen.context, seen.available, strict=True
            )
        ]
        paid = worlds.pull(np.array(arms, np.int32))
        for player, arm, reward, delay, context, run in zip(
            players, arms, paid.reward.tolist(), paid.delay, seen.context, block, strict=True
        ):
            if not math.isfinite(reward):
                check.fail("reward", "a finite number at every step", f"{reward} in run {run}")
            if delay >= 0:
                due[time + int(delay)].append(partial(player.update, arm, reward, context))
        for tell in due.pop(time, ()):
            tell()
        if time % CHUNK == CHUNK - 1 or time == horizon - 1:
            moved(time % CHUNK + 1)


def chosen(player: Player, context: np.ndarray, available: np.ndarray) -> int:
    """The arm that a player names, if it was offered."""
    offer = np.flatnonzero(available).tolist()
    if not offer:
        check.fail("available", "true for at least one arm at every step", available.tolist())
    arm = player.pull(offer, context)
    if not check.is_whole(arm) or arm not in offer:
        check.fail(
            "arm",
            f"an available one, of {offer} (a policy that knows no masks can be given to "
            "`external_policy` with a `pull` that chooses among the arms that it is offered)",
            arm,
        )
    return int(arm)


class Compiled(NamedTuple):
    """A policy of ours, in a block of one run."""

    init: Callable[[Keys], State]
    act: Callable[..., tuple[Array, PyTree, State]]
    learn: Callable[[State, PyTree, float], State]


@lru_cache(maxsize=64)
def compiled(policy: Policy) -> Compiled:
    def init(keys: Keys) -> State:
        return policy.init(keys.policy_start[0])

    def act(
        keys: Keys, time: int, state: State, context: Array, available: Array
    ) -> tuple[Array, PyTree, State]:
        own = jax.random.fold_in(keys.steps[0, 2], time)
        decision, state = policy.act(own, state, context, available)
        return decision.arm, decision.ticket, state

    return Compiled(jax.jit(init), jax.jit(act), jax.jit(policy.learn))


class OurPlayer:
    """A policy of ours in one run, with the randomness that `simulate` would give it."""

    def __init__(self, policy: Policy, num_arms: int, keys: Keys) -> None:
        self._policy, self._num_arms, self._keys = compiled(policy), num_arms, keys
        self._state = self._policy.init(keys)
        self._ticket: PyTree = None
        self._time = 0

    def pull(self, arms: Sequence[int], context: np.ndarray) -> int:
        available = np.zeros(self._num_arms, bool)
        available[arms] = True
        arm, self._ticket, self._state = self._policy.act(
            self._keys, self._time, self._state, context, available
        )
        self._time += 1
        return int(arm)

    def update(self, arm: int, reward: float, context: np.ndarray) -> None:  # noqa: ARG002
        self._state = self._policy.learn(self._state, self._ticket, reward)
