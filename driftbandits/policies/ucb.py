"""UCB1: the mean plus a bonus for uncertainty.

    index_k = mean_k + scale * sqrt(2 ln(t) / pulls_k),   infinite before the first pull

t is the number of rewards so far. `scale` is the width of `spec.reward_range` by default.

Paper: Auer, Cesa-Bianchi & Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".

Use it when rewards do not drift and you want a deterministic rule. Not when they do: it never
forgets, so an arm that was good long ago still looks good; `sw_ucb` and `d_ucb` forget.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities


class UcbState(NamedTuple):
    pulls: Array  # (num_arms,) int32
    sums: Array  # (num_arms,) float32, of the rewards


def ucb(spec: BanditSpec, *, scale: float | None = None) -> Policy:
    """Upper confidence bounds; it assumes that nothing drifts.

    Args:
        scale: Scale of the bonus; by default the width of the reward range.
    """
    low, high = spec.reward_range
    if scale is None:
        scale = high - low
    check.not_negative(scale=scale)

    def init(key: Key) -> UcbState:
        return UcbState(jnp.zeros(spec.num_arms, jnp.int32), jnp.zeros(spec.num_arms))

    def act(key: Key, state: UcbState, observation: Observation) -> tuple[Decision, UcbState]:
        pulls = state.pulls
        time = jnp.maximum(jnp.sum(pulls), 1).astype(jnp.float32)
        index = state.sums / pulls + scale * jnp.sqrt(2 * jnp.log(time) / pulls)
        probabilities = greedy_probabilities(
            jnp.where(pulls == 0, jnp.inf, index), observation.available
        )
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: UcbState, arm: Array, reward: Array) -> UcbState:
        pulled = jnp.arange(spec.num_arms) == arm
        return UcbState(count_pull(state.pulls, arm), state.sums + jnp.where(pulled, reward, 0.0))

    return Policy(init, act, learn)
