"""What is recorded of every run.

The compiled loop sums over the steps between two recorded times, in float32; the host adds these
sums up in float64.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Rewards, State


class Trace(NamedTuple):
    """What happened in every run: cumulative sums at the recorded times.

    All arrays but `times` have one row per run, and the last column is the whole run. Arrays are
    float64 unless noted.

    Attributes:
        times: The recorded times, as numbers of pulls: int64 of shape `(points,)`.
        regret: Expected regret: at each pull, the highest mean of the available arms minus the mean
            of the pulled arm. Shape `(runs, points)`.
        realised_regret: The same with sampled rewards in place of means.
        expected_reward: The means of the pulled arms.
        reward: The rewards that were received.
        best_pulls: How many pulls were of an arm with the highest mean at that time, int64.
        changes: How many abrupt changes the environment has had, int64.
        pulls: How often each arm was pulled: int64 of shape `(runs, points, num_arms)`.

    Example:
        ```python
        from driftbandits import Trace, simulate

        trace = simulate("ucb", "sinusoidal", horizon=200, runs=4)
        assert isinstance(trace, Trace)
        print(trace.times[-1], trace.regret[:, -1], trace.pulls[0, -1])
        ```
    """

    times: np.ndarray  # (points,) int64, steps done
    regret: np.ndarray  # (runs, points) best mean of the moment minus the mean of the pulled arm
    realised_regret: np.ndarray  # (runs, points) the same with sampled rewards
    expected_reward: np.ndarray  # (runs, points) means of the pulled arms
    reward: np.ndarray  # (runs, points) sampled rewards of the pulled arms
    best_pulls: np.ndarray  # (runs, points) int64, pulls of an arm that was best at the moment
    changes: np.ndarray  # (runs, points) int64, moments at which the world's era changed
    pulls: np.ndarray  # (runs, points, num_arms) int64


class Record(NamedTuple):
    """Sums over the steps between two recorded times, in the order of `Trace`."""

    regret: Array
    realised_regret: Array
    expected_reward: Array
    reward: Array
    best_pulls: Array
    changes: Array
    pulls: Array
    nothing_available: Array  # steps without an available arm
    not_finite: Array  # steps with a reward or a mean that is not a finite number
    no_choice: Array  # steps in which the policy named no available arm


def record_step(
    environment: Environment,
    world: State,
    after: State,
    rewards: Rewards,
    available: Array,
    arm: Array,
) -> Record:
    """The contribution of one step to the sums."""
    mean, sampled = pick(rewards.mean, arm), pick(rewards.sampled, arm)
    best = jnp.max(rewards.mean, where=available, initial=-jnp.inf)
    era = environment.era
    changed = jnp.bool_(False) if era is None else era(after) != era(world)
    return Record(
        regret=best - mean,
        realised_regret=jnp.max(rewards.sampled, where=available, initial=-jnp.inf) - sampled,
        expected_reward=mean,
        reward=sampled,
        best_pulls=(mean >= best).astype(jnp.int32),
        changes=changed.astype(jnp.int32),
        pulls=(jnp.arange(available.size) == arm).astype(jnp.int32),
        nothing_available=(~available.any()).astype(jnp.int32),
        not_finite=(~jnp.isfinite(rewards.sampled + rewards.mean).all()).astype(jnp.int32),
        no_choice=(~pick(available, arm)).astype(jnp.int32),
    )


def pick(values: Array, arm: Array) -> Array:
    """The arm's value, by a mask: a mask vectorises over runs, an index does not."""
    return jnp.sum(values, where=jnp.arange(values.size) == arm).astype(values.dtype)


def refuse_broken(record: Record, first_run: int) -> None:
    """Raises `InputError` for an invalid environment or a policy that has diverged."""
    for name, rule, steps in (
        ("available", "true for at least one arm at every step", record.nothing_available),
        ("reward", "a finite number at every step", record.not_finite),
        ("arm", "an available one (has the policy diverged to NaN?)", record.no_choice),
    ):
        if steps.any():
            run = first_run + int(np.argmax(steps.any(axis=0)))
            check.fail(name, rule, f"{int(steps.sum())} steps without, the first in run {run}")


def add_up(records: list[Record], horizon: int, every: int) -> Trace:
    """Turns the sums between recorded times into cumulative sums, with runs as the first axis."""
    points = -(-horizon // every)

    def total(name: str) -> np.ndarray:
        sums = np.concatenate([getattr(record, name) for record in records])[:points]
        wide = sums.astype(np.int64 if sums.dtype.kind == "i" else np.float64)
        return wide.cumsum(axis=0, out=wide).swapaxes(0, 1)

    times = np.minimum((np.arange(points) + 1) * every, horizon)
    return Trace(times, *(total(name) for name in Trace._fields[1:]))


def join(traces: list[Trace]) -> Trace:
    """The runs of several traces, one after the other."""
    return Trace(traces[0].times, *(np.concatenate(x) for x in list(zip(*traces, strict=True))[1:]))


def cut(trace: Trace, runs: int) -> Trace:
    """The first runs of a trace."""
    return Trace(trace.times, *(values[:runs] for values in trace[1:]))
