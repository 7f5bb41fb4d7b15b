"""Trending arms: Gaussian arms whose means move on straight lines.

    mean_k(t) = start_k + (end_k - start_k) * f(t),   start_k, end_k ~ U(0, 1)   once per run
    then turn   f(t) goes from 0 to 1 in `duration` steps, back to 0 in as many, and so on
    then hold   f(t) = min(t / duration, 1)

If one arm would be the best at both ends, each arm takes the end of the one before it, so the best
arm always changes on the way. Time counts from 0. An era ends when another arm becomes the best.

Example: one thing comes into fashion while another goes out of it.

Paper: Besbes, Gur & Zeevi (2014), "Stochastic multi-armed-bandit problem with non-stationary
rewards", the drifting case: the total variation of the means is fixed and spread evenly over time.

Use it when drift should be slow and steady. Not when it should have no direction: see
`random_walk`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key
from driftbandits.environments.rotting import gaussian_arms
from driftbandits.numerics.eras import best_arm

THEN = ("turn", "hold")
LONGEST = 10**9  # int32 can count the way there and back


class TrendingState(NamedTuple):
    start: Array  # (num_arms,) float32
    end: Array  # (num_arms,) float32
    time: Array  # () int32, modulo the way there and back, or up to its end


def trending(
    *, num_arms: int = 10, duration: int = 10_000, then: str = "turn", deviation: float = 0.2
) -> Environment:
    """Gaussian arms whose means move on straight lines between two levels.

    Args:
        num_arms: Number of arms.
        duration: Steps from one level to the other.
        then: What the means do when they arrive: turn or hold.
        deviation: Standard deviation of the rewards.
    """
    check.integer(num_arms=num_arms)
    check.integer(duration=duration, at_most=LONGEST)
    check.known("then", then, THEN)
    check.positive(deviation=deviation)

    def init(key: Key) -> TrendingState:
        start, end = jax.random.uniform(key, (2, num_arms))
        same_best = jnp.argmax(start) == jnp.argmax(end)
        end = jnp.where(same_best, jnp.roll(end, 1), end)
        return TrendingState(start, end, jnp.int32(0))

    def means(state: TrendingState) -> Array:
        there = 1 - jnp.abs(1 - state.time / duration)
        return state.start + (state.end - state.start) * there

    def advance(state: TrendingState, arm: Array) -> TrendingState:
        time = state.time + 1
        time = time % (2 * duration) if then == "turn" else jnp.minimum(time, duration)
        return state._replace(time=time)

    return gaussian_arms(num_arms, deviation, init, means, advance, best_arm(means))
