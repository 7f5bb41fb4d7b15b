"""Abrupt changes: Bernoulli arms whose means are all redrawn now and then.

    theta_k ~ U(0, 1);   before each later step, with probability hazard: all theta_k ~ U(0, 1) anew

Steps count from 0: with times=[1000] the first step with new means is step 1000, after 1000 pulls.

Examples: a market after a news item, a page after a redesign.

Paper: Garivier & Moulines (2011), "On upper-confidence bound policies for switching bandit
problems", where the moments are given. The constant hazard is that of Mellor & Shapiro (2013),
"Thompson sampling in switching environments with Bayesian online change detection", where all arms
switch together.

Use it when you want to see how fast a policy recovers after everything it knew became worthless.
Not when changes are gradual: see `random_walk` or `trending`.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.numerics.random_keys import key_at


class AbruptState(NamedTuple):
    theta: Array  # (num_arms,) float32
    words: Array  # (2,) uint32, of the key that all redraws come from
    time: Array  # () int32
    redraws: Array  # () int32


def abrupt(
    *, num_arms: int = 10, hazard: float = 0.0005, times: list[int] | None = None
) -> Environment:
    """Bernoulli arms whose means are all redrawn now and then, at random or given times.

    Args:
        num_arms: Number of arms.
        hazard: Probability of a redraw before each step.
        times: Steps before which there is a redraw, rising and from 1 on, instead of the hazard.
    """
    check.integer(num_arms=num_arms)
    check.probability(hazard=hazard)
    check_times(times)

    def init(key: Key) -> AbruptState:
        own, later = jax.random.split(key)
        zero = jnp.int32(0)
        return AbruptState(
            jax.random.uniform(own, (num_arms,)), jax.random.key_data(later), zero, zero
        )

    def observe(key: Key, state: AbruptState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: AbruptState, context: Array) -> Rewards:
        return toss(key, state.theta)

    def advance(state: AbruptState, arm: Array) -> AbruptState:
        time = state.time + 1
        numbers = jax.random.uniform(key_at(state.words, time), (num_arms + 1,))
        anew = numbers[-1] < hazard if times is None else jnp.any(jnp.array(times) == time)
        theta = jnp.where(anew, numbers[:-1], state.theta)
        return AbruptState(theta, state.words, time, state.redraws + anew)

    def era(state: AbruptState) -> Array:
        return state.redraws

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance, era)


def check_times(times: Any) -> None:
    if times is None:
        return
    rule = "a list of rising whole numbers of at least 1"
    if not isinstance(times, list | tuple) or not times:
        check.fail("times", rule, times)
    check.integer(**{"each of times": times[0]})
    for earlier, later in pairwise(times):
        check.integer(**{"each of times": later})
        if later <= earlier:
            check.fail("times", rule, list(times))
