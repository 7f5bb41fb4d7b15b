"""D-UCB: upper confidence bounds with discounted rewards.

    N_k, X_k <- discount * N_k, discount * X_k for all arms with every reward r; then for its arm
    N_a <- N_a + 1, X_a <- X_a + r
    index_k = X_k / N_k + 2 scale * sqrt(xi ln(sum N) / N_k),   infinite before the first pull
              and when almost nothing is left of N_k

`scale` (B in the paper) is the width of `spec.reward_range` by default. The default discount is
1 - 1 / (4 sqrt(T)), where T is the horizon, or 10,000 if it is unknown.

Paper: Kocsis & Szepesvari (2006), "Discounted UCB"; Garivier & Moulines (2011), "On
upper-confidence bound policies for switching bandit problems".

Use it when the means drift or jump, and old rewards should fade rather than drop out of a window.
Not when nothing drifts: it explores for ever, and its bonus is wide, about twice that of `sw_ucb`.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.fading import check_discount
from driftbandits.numerics.horizon import horizon_of

FORGOTTEN = 1e-30  # below this, float32 loses the digits of X / N


class DUcbState(NamedTuple):
    pulls: Array  # (num_arms,) float32, discounted
    sums: Array  # (num_arms,) float32, discounted rewards


def d_ucb(
    spec: BanditSpec, *, discount: float | None = None, xi: float = 0.5, scale: float | None = None
) -> Policy:
    """Upper confidence bounds with a discount, for means that drift.

    Args:
        discount: Factor for old rewards at each new one; by default 1 - 1 / (4 sqrt(T)) for the
            horizon T.
        xi: Factor inside the square root of the bonus.
        scale: Scale of the bonus; by default the width of the reward range.
    """
    low, high = spec.reward_range
    scale = high - low if scale is None else scale
    if discount is None:
        discount = 1 - 1 / (4 * math.sqrt(horizon_of(spec)))
    check_discount(discount)
    check.not_negative(xi=xi, scale=scale)

    def init(key: Key) -> DUcbState:
        return DUcbState(jnp.zeros(spec.num_arms), jnp.zeros(spec.num_arms))

    def act(key: Key, state: DUcbState, observation: Observation) -> tuple[Decision, DUcbState]:
        pulls = state.pulls
        total = jnp.maximum(jnp.sum(pulls), 1.0)
        index = state.sums / pulls + 2 * scale * jnp.sqrt(xi * jnp.log(total) / pulls)
        index = jnp.where(pulls < FORGOTTEN, jnp.inf, index)
        probabilities = greedy_probabilities(index, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: DUcbState, arm: Array, reward: Array) -> DUcbState:
        pulled = jnp.arange(spec.num_arms) == arm
        return DUcbState(
            discount * state.pulls + pulled,
            discount * state.sums + jnp.where(pulled, reward, 0.0),
        )

    return Policy(init, act, learn)
