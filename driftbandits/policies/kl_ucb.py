"""KL-UCB: the highest mean that a Bernoulli arm could plausibly have, given what it has paid.

    index_k = max { q : pulls_k kl(mean_k, q) <= ln(t) + c ln(ln(t)) },   new arms before all others
    kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))

t is the number of rewards so far; ln(ln(t)) counts as 0 while it is negative. Rewards are clipped
to `spec.reward_range` and scaled to [0, 1]; the paper's bounds hold for such rewards, too.

Paper: Garivier & Cappe (2011), "The KL-UCB algorithm for bounded stochastic bandits and beyond".

Use it when nothing drifts: on Bernoulli arms its regret grows as slowly with the horizon as
possible, and only ties are broken at random. Not when means move: it never forgets (`sw_ucb` and
`glr_ucb` do).

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities
from driftbandits.numerics.kl import upper_score
from driftbandits.numerics.shares import share_of


class KlUcbState(NamedTuple):
    pulls: Array  # (num_arms,) int32
    sums: Array  # (num_arms,) float32, of the rewards scaled to [0, 1]


def kl_ucb(spec: BanditSpec, *, c: float = 0.0) -> Policy:
    """Upper confidence bounds for Bernoulli arms; it assumes that nothing drifts.

    Args:
        c: Factor of the term ln(ln(t)); theory asks for 3, practice for 0.
    """
    check.not_negative(c=c)

    def init(key: Key) -> KlUcbState:
        return KlUcbState(jnp.zeros(spec.num_arms, jnp.int32), jnp.zeros(spec.num_arms))

    def act(key: Key, state: KlUcbState, observation: Observation) -> tuple[Decision, KlUcbState]:
        pulls = state.pulls
        logarithm = jnp.log(jnp.maximum(jnp.sum(pulls), 1).astype(jnp.float32))
        level = (logarithm + c * jnp.log(jnp.maximum(logarithm, 1.0))) / pulls
        score = upper_score(state.sums / pulls, level)
        probabilities = greedy_probabilities(
            jnp.where(pulls == 0, jnp.inf, score), observation.available
        )
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: KlUcbState, arm: Array, reward: Array) -> KlUcbState:
        share = share_of(reward, spec.reward_range)
        pulled = jnp.arange(spec.num_arms) == arm
        return KlUcbState(count_pull(state.pulls, arm), state.sums + jnp.where(pulled, share, 0.0))

    return Policy(init, act, learn)
