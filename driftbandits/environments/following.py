"""Following: Bernoulli arms whose means depend on which arm was pulled just before.

    mean_k = base_k + effect_jk,   j the arm pulled just before; effect is 0 in the first step
    base_k ~ U(effect, 1 - effect),   effect_jk ~ U(-effect, effect)   once per run

Examples: the order of songs, or of crops.

Paper: Arora, Dekel & Tewari (2012), "Online bandit learning against an adaptive adversary: from
regret to policy regret". It is their adversary with a memory of one pull, but with random rewards.

Use it when a pull should change what the next one pays. Not when you need the best possible
sequence as a reference: regret and `oracle` use the arm that is best at the moment, and pulling an
arm that prepares a rich one may beat it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss


class FollowingState(NamedTuple):
    base: Array  # (num_arms,) float32
    effect: Array  # (num_arms, num_arms) float32, of the row's arm on the column's
    previous: Array  # () int32, the arm pulled last; -1 before the first pull


def following(*, num_arms: int = 5, effect: float = 0.25) -> Environment:
    """Bernoulli arms whose means depend on the arm that was pulled just before.

    Args:
        num_arms: Number of arms.
        effect: How much the arm before may add or take away, at most 0.5.
    """
    check.integer(num_arms=num_arms)
    if not check.is_number(effect) or not 0 <= effect <= 0.5:
        check.fail("effect", "a number in [0, 0.5]", effect)

    def init(key: Key) -> FollowingState:
        base_key, effect_key = jax.random.split(key)
        base = jax.random.uniform(base_key, (num_arms,), minval=effect, maxval=1 - effect)
        shape = (num_arms, num_arms)
        effects = jax.random.uniform(effect_key, shape, minval=-effect, maxval=effect)
        return FollowingState(base, effects, jnp.int32(-1))

    def observe(key: Key, state: FollowingState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: FollowingState, context: Array) -> Rewards:
        row = jnp.arange(num_arms)[:, None] == state.previous
        return toss(key, state.base + jnp.sum(state.effect, axis=0, where=row))

    def advance(state: FollowingState, arm: Array) -> FollowingState:
        return state._replace(previous=arm)

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)
