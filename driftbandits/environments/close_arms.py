"""Close arms: Bernoulli arms, one of which is slightly better than the others.

    theta_k = level + gap for one arm, drawn once per run, and level for all others
    with `every`: after that many steps another arm, drawn uniformly, is the better one

Steps count from 0.

Example: versions of a page that hardly differ, so it takes many visitors to tell them apart.

Paper: Auer, Cesa-Bianchi, Freund & Schapire (2002), "The nonstochastic multiarmed bandit problem",
where it is the hard case of the lower bound. With switches it is that of Garivier & Moulines
(2011), "On upper-confidence bound policies for switching bandit problems".

Use it when you want to see how many pulls a policy needs for a small difference. Not when the size
of the differences should vary: see `bernoulli`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.numerics.random_keys import key_at


class CloseArmsState(NamedTuple):
    best: Array  # () int32
    words: Array  # (2,) uint32, of the key that all switches come from
    time: Array  # () int32


def close_arms(
    *, num_arms: int = 10, level: float = 0.5, gap: float = 0.05, every: int | None = None
) -> Environment:
    """Bernoulli arms, one of which is better than the others by a small gap.

    Args:
        num_arms: Number of arms, at least two.
        level: Mean of all arms but one.
        gap: How much better that one is.
        every: Steps after which another arm is the better one; by default never.
    """
    check.integer(num_arms=num_arms, at_least=2)
    check.probability(level=level)
    check.positive(gap=gap)
    if level + gap > 1:
        check.fail("gap", "at most 1 - level", gap)
    if every is not None:
        check.integer(every=every)

    def init(key: Key) -> CloseArmsState:
        own, later = jax.random.split(key)
        best = jax.random.randint(own, (), 0, num_arms)
        return CloseArmsState(best, jax.random.key_data(later), jnp.int32(0))

    def observe(key: Key, state: CloseArmsState) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: CloseArmsState, context: Array) -> Rewards:
        better = jnp.arange(num_arms) == state.best
        return toss(key, jnp.where(better, jnp.float32(level + gap), level))

    def advance(state: CloseArmsState, arm: Array) -> CloseArmsState:
        time = state.time + 1
        if every is None:
            return state._replace(time=time)
        further = jax.random.randint(key_at(state.words, time), (), 1, num_arms)
        best = jnp.where(time % every == 0, (state.best + further) % num_arms, state.best)
        return state._replace(best=best, time=time)

    era = None if every is None else lambda state: state.time // every
    return Environment(BanditSpec(num_arms), init, observe, rewards, advance, era)
