"""The simulation loop in Python, for policies and environments that are not written in JAX.

A JAX policy in a JAX environment is passed to `simulate`, which is much faster. An external policy
in a JAX environment takes each step in all runs together, so that a step of the worlds is one
compiled call. A foreign environment is simulated run by run; run r starts with the seed `seed + r`.
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
from driftbandits.core import BanditSpec, Environment, Observation, Policy, PyTree, State
from driftbandits.environments import build_environment
from driftbandits.integrations.external import ExternalPolicy, Player, Shown, player_of
from driftbandits.integrations.foreign import ForeignEnvironment, ForeignRun
from driftbandits.integrations.stepping import SteppedRuns
from driftbandits.policies import build_policy
from driftbandits.simulation import compiling
from driftbandits.simulation.engine import (
    CHUNK,
    POINTS,
    WIDEST,
    Keys,
    ProgressCallback,
    block_keys,
    count_steps,
    ignore,
    simulate,
)
from driftbandits.simulation.traces import Trace, add_up, join, refuse_broken


def simulate_external(
    policy: ExternalPolicy | Policy | str,
    environment: Environment | str | ForeignEnvironment,
    *,
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    record_every: int | None = None,
    progress: ProgressCallback | None = None,
) -> Trace:
    """Simulates any policy in any environment, including those of other libraries.

    In an environment of driftbandits a policy meets the same worlds as in `simulate` with the same
    seed. Where a foreign environment does not tell the means of its arms, the regrets are NaN.

    Args:
        policy: What `external_policy` returned, or a policy of driftbandits, or its name with
            settings.
        environment: An environment of driftbandits, or its name with settings, or what
            `from_gymnasium` returned.
        horizon: The number of pulls per run.
        runs: The number of independent repetitions. Adding more does not change the first ones.
        seed: The random seed.
        record_every: The number of steps between recorded times. None records about a thousand
            times.
        progress: A function that is called with the number of steps done and the number in total.

    Returns:
        The same trace as `simulate` returns.

    Raises:
        InputError: If an argument is invalid, or the policy names an arm that is not available.

    Example:
        ```python
        import random

        from driftbandits import external_policy, simulate_external

        chance = external_policy(
            lambda seed: random.Random(seed),
            pull=lambda generator, arms, context: generator.choice(arms),
            update=lambda generator, arm, reward, context: None,
        )
        trace = simulate_external(chance, "sinusoidal", horizon=50, runs=2)
        print(trace.regret[:, -1])
        ```
    """
    check.integer(horizon=horizon, runs=runs)
    check.integer(seed=seed, at_least=0)
    if isinstance(environment, str):
        environment = build_environment(environment)
    every = -(-horizon // POINTS) if record_every is None else record_every
    check.integer(record_every=every)
    if isinstance(environment, Environment) and not isinstance(policy, ExternalPolicy):
        size: Any = {"horizon": horizon, "runs": runs, "record_every": every}
        return simulate(policy, environment, seed=seed, progress=progress, **size)
    width = WIDEST if isinstance(environment, Environment) else 1
    blocks = [range(runs)[first : first + width] for first in range(0, runs, width)]
    report_steps = count_steps(horizon * len(blocks), progress or ignore)
    spec = environment.spec._replace(horizon=horizon)
    traces = []
    for block in blocks:
        players = players_of(policy, spec, seed, block)
        stepped = runs_of(environment, seed, block, every, points=-(-horizon // every))
        traces.append(block_trace(players, stepped, block, every, horizon, report_steps))
    return join(traces)


def block_trace(
    players: Sequence[Player],
    stepped: SteppedRuns | ForeignRun,
    block: range,
    every: int,
    horizon: int,
    report_steps: Callable[[int], None],
) -> Trace:
    play(players, stepped, block, horizon, report_steps)
    record = stepped.records()
    if isinstance(stepped, SteppedRuns):  # of a foreign environment, something may be unknown
        refuse_broken(record, block.start)
    return add_up([record], horizon, every)


def runs_of(
    environment: Environment | ForeignEnvironment, seed: int, block: range, every: int, points: int
) -> SteppedRuns | ForeignRun:
    if isinstance(environment, Environment):
        return SteppedRuns(environment, seed, block, every, points)
    return ForeignRun(environment, seed, block.start, every, points)


def players_of(
    policy: ExternalPolicy | Policy | str, spec: BanditSpec, seed: int, block: range
) -> list[Player]:
    """A policy for each run, whose randomness is the run's own."""
    keys = block_keys(seed, len(block), block.start)
    if isinstance(policy, ExternalPolicy):
        return [player_of(policy, spec, own) for own in seeds_of(keys).tolist()]
    built = build_policy(policy, spec) if isinstance(policy, str) else policy
    if built.sees_means:
        check.fail("policy", "one that does not see the means, in a foreign environment", policy)
    return [JaxPlayer(built, spec, keys)]


@jax.jit
def seeds_of(keys: Keys) -> Array:
    """An integer for each run."""
    return jax.vmap(lambda own: jax.random.randint(own, (), 0, 2**31 - 1))(keys.policy_start)


def play(
    players: Sequence[Player],
    stepped: SteppedRuns | ForeignRun,
    block: range,
    horizon: int,
    report_steps: Callable[[int], None],
) -> None:
    """Lets every player pull in its own run up to the horizon, and delivers rewards when due."""
    due: defaultdict[int, list[Callable[[], None]]] = defaultdict(list)
    for time in range(horizon):
        seen = stepped.latest
        all_shown = list(map(Shown, seen.context, seen.arms, seen.arm_ids))
        arms = [
            chosen(player, shown, available)
            for player, shown, available in zip(players, all_shown, seen.available, strict=True)
        ]
        paid = stepped.pull(np.array(arms, np.int32))
        for player, arm, reward, delay, shown, run in zip(
            players, arms, paid.reward.tolist(), paid.delay, all_shown, block, strict=True
        ):
            if not math.isfinite(reward):
                check.fail("reward", "a finite number at every step", f"{reward} in run {run}")
            if delay >= 0:
                due[time + int(delay)].append(partial(player.update, arm, reward, shown))
        for deliver in due.pop(time, ()):
            deliver()
        if time % CHUNK == CHUNK - 1 or time == horizon - 1:
            report_steps(time % CHUNK + 1)


def chosen(player: Player, shown: Shown, available: np.ndarray) -> int:
    """The arm that a player chooses; raises `InputError` if it is not available."""
    offer = np.flatnonzero(available).tolist()
    if not offer:
        check.fail("available", "true for at least one arm at every step", available.tolist())
    arm = player.pull(offer, shown)
    if not check.is_integer(arm) or arm not in offer:
        check.fail(
            "arm",
            f"an available one, of {offer} (a policy that knows no masks can be given to "
            "`external_policy` with a `pull` that chooses among the arms that it is offered)",
            arm,
        )
    return int(arm)


class CompiledPolicy(NamedTuple):
    """A compiled JAX policy, in a block of one run."""

    init: Callable[[Keys], State]
    act: Callable[..., tuple[Array, PyTree, State]]
    learn: Callable[[State, PyTree, float], State]


@lru_cache(maxsize=64)
def compiled(policy: Policy) -> CompiledPolicy:
    def init(keys: Keys) -> State:
        return policy.init(keys.policy_start[0])

    def act(
        keys: Keys, time: int, state: State, observation: Observation
    ) -> tuple[Array, PyTree, State]:
        own = jax.random.fold_in(keys.steps[0, 2], time)
        decision, state = policy.act(own, state, observation)
        return decision.arm, decision.ticket, state

    return CompiledPolicy(*(compiling.jit(each) for each in (init, act, policy.learn)))


class JaxPlayer:
    """A JAX policy in one run, with the random keys that `simulate` would give it."""

    def __init__(self, policy: Policy, spec: BanditSpec, keys: Keys) -> None:
        self._policy, self._spec, self._keys = compiled(policy), spec, keys
        self._state = self._policy.init(keys)
        self._ticket: PyTree = None
        self._time = 0

    def pull(self, arms: Sequence[int], shown: Shown) -> int:
        available: Any = np.zeros(self._spec.num_arms, bool)
        available[arms] = True
        features: Any = shown.features if self._spec.arm_dim else None
        ids: Any = shown.arm_ids if self._spec.arms_change else None
        observation = Observation(shown.context, available, features, ids)  # type: ignore[arg-type]
        arm, self._ticket, self._state = self._policy.act(
            self._keys, self._time, self._state, observation
        )
        self._time += 1
        return int(arm)

    def update(self, arm: int, reward: float, shown: Shown) -> None:  # noqa: ARG002
        self._state = self._policy.learn(self._state, self._ticket, reward)
