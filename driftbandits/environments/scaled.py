"""Scale: the rewards of any environment in another unit.

    times * reward_k + plus,   and the means alike

`spec.reward_range` and `spec.noise` change with them.

Examples: cents instead of dollars, or losses.

Use it to check that a policy does not depend on the unit of the rewards. Not to make a problem
harder: for a policy that takes the reward range into account nothing changes.
"""

from typing import Any

from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Rewards, State


def scaled(environment: Environment, scale: float | list[float]) -> Environment:
    """Multiplies rewards by a positive number; a pair [times, plus] also adds a number.

    Args:
        environment: The environment to change.
        scale: The factor, or [times, plus].
    """
    times, plus = pair_from(scale)
    spec = environment.spec
    low, high = spec.reward_range
    spec = spec._replace(
        reward_range=(times * low + plus, times * high + plus), noise=times * spec.noise
    )

    def rewards(key: Key, state: State, context: Array) -> Rewards:
        sampled, mean = environment.rewards(key, state, context)
        return Rewards(times * sampled + plus, times * mean + plus)

    return environment._replace(spec=spec, rewards=rewards)


def pair_from(scale: Any) -> tuple[float, float]:
    pair = tuple(scale) if isinstance(scale, list | tuple) else (scale, 0.0)
    rule = "a positive number, or a pair [times, plus] of a positive number and another one"
    if len(pair) != 2 or not all(check.is_number(value) for value in pair) or pair[0] <= 0:
        check.fail("scaled", rule, scale)
    return float(pair[0]), float(pair[1])
