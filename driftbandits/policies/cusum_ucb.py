"""CUSUM-UCB: UCB that starts an arm afresh when a two-sided CUSUM test rings.

    arm = argmax mean_k + sqrt(xi ln(n) / pulls_k), but uniform with probability exploration
    u = mean of the arm's first warm_up rewards;  after those, with each reward y of the arm:
    up = max(0, up + y - u - drift);  down = max(0, down + u - y - drift)
    up >= threshold or down >= threshold: forget everything about this arm

Liu, Lee & Shroff (2018), "A change-detection based framework for piecewise-stationary multi-armed
bandit problem". Pulls and means are those since the arm's last alarm, n is the sum of these pulls.
Rewards are clipped to `spec.reward_range` and scaled to [0, 1].
TODO
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import count_pull, draw, greedy_law, uniform_law
from driftbandits.parts.detection import assumed_horizon, ucb_index
from driftbandits.parts.shares import share_of


class CusumUcbState(NamedTuple):
    """All of it counts from the arm's last alarm, except the alarms."""

    pulls: Array  # (num_arms,) int32
    sums: Array  # (num_arms,) float32, of the rewards
    first_sums: Array  # (num_arms,) float32, of the first warm_up rewards
    up: Array  # (num_arms,) float32, evidence that the mean has risen
    down: Array  # (num_arms,) float32, evidence that it has fallen
    alarms: Array  # (num_arms,) int32, so far


def cusum_ucb(
    spec: BanditSpec,
    *,
    changes: float = 5.0,
    warm_up: int = 50,
    drift: float = 0.1,
    threshold: float | None = None,
    exploration: float | None = None,
    xi: float = 1.0,
) -> Policy:
    """UCB that forgets an arm when a CUSUM test says that it has changed.

    Args:
        changes: expected within the horizon.
        warm_up: rewards of an arm that tell its mean; later ones are tested against it.
        drift: of the mean that goes unnoticed, as a share of the reward range.
        threshold: of the test; none is ln(horizon / changes) / (8 drift).
        exploration: probability of a uniform arm; none is
            sqrt(changes / horizon * ln(horizon / changes)).
        xi: scales the square of the confidence bonus.
    """
    check.positive(changes=changes, drift=drift)
    check.whole(warm_up=warm_up)
    check.not_negative(xi=xi)
    length = max(assumed_horizon(spec) / changes, math.e)  # of the time between two changes
    if threshold is None:
        threshold = math.log(length) / (8 * drift)
    if exploration is None:
        exploration = math.sqrt(math.log(length) / length)
    check.positive(threshold=threshold)
    check.probability(exploration=exploration)

    def init(key: Key) -> CusumUcbState:
        none, zeros = jnp.zeros(spec.num_arms, jnp.int32), jnp.zeros(spec.num_arms)
        return CusumUcbState(none, zeros, zeros, zeros, zeros, none)

    def act(
        key: Key, state: CusumUcbState, context: Array, available: Array
    ) -> tuple[Decision, CusumUcbState]:
        index = ucb_index(state.sums, state.pulls, jnp.sum(state.pulls), xi)
        greedy, uniform = greedy_law(index, available), uniform_law(available)
        law = (1 - exploration) * greedy + exploration * uniform
        arm = draw(key, law)
        return Decision(arm, law, arm), state

    def learn(state: CusumUcbState, arm: Array, reward: Array) -> CusumUcbState:
        gain = share_of(reward, spec.reward_range)
        pulled = jnp.arange(spec.num_arms) == arm
        tested = pulled & (state.pulls >= warm_up)
        rise = jnp.where(tested, gain - state.first_sums / warm_up, 0.0)
        up = jnp.where(tested, jnp.maximum(state.up + rise - drift, 0.0), state.up)
        down = jnp.where(tested, jnp.maximum(state.down - rise - drift, 0.0), state.down)
        alarm = tested & (jnp.maximum(up, down) >= threshold)
        seen = CusumUcbState(
            count_pull(state.pulls, arm),
            state.sums + jnp.where(pulled, gain, 0.0),
            state.first_sums + jnp.where(pulled & ~tested, gain, 0.0),
            up,
            down,
            state.alarms,
        )
        return forget(seen, alarm)

    return Policy(init, act, learn)


def forget(state: CusumUcbState, alarm: Array) -> CusumUcbState:
    """Starts the arms with an alarm afresh."""
    afresh = [jnp.where(alarm, jnp.zeros_like(value), value) for value in state[:-1]]
    return CusumUcbState(*afresh, state.alarms + alarm)
