"""CUSUM-UCB: UCB that restarts an arm when a two-sided CUSUM test detects a change.

    arm = argmax mean_k + sqrt(xi ln(n) / pulls_k), but uniform with probability exploration
    u = mean of the arm's first warm_up rewards;  after those, with each reward y of the arm:
    up = max(0, up + y - u - drift);  down = max(0, down + u - y - drift)
    up >= threshold or down >= threshold: forget everything about this arm

Pulls and means count from the arm's last alarm, and n is the sum of these pulls. Rewards are
clipped to `spec.reward_range` and scaled to [0, 1].

Paper: Liu, Lee & Shroff (2018), "A change-detection based framework for piecewise-stationary
multi-armed bandit problem".

Differences from the paper: its threshold is ln(horizon / changes) divided by a constant that it
leaves open. Ours is 8 drift. The default exploration is a tenth of the paper's
sqrt(changes / horizon * ln(horizon / changes)), which costs too much at horizons such as 10,000.
A reward that arrives after an alarm counts as new, even if the pull was before it.

Use it when arms jump now and then, each at its own time, by more than twice `drift`, and stay
constant in between. Not when rewards change gradually: the alarm then comes too late or too often.
Not when an arm that is hardly ever pulled may rise: it takes more than `warm_up` pulls to notice.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities, with_exploration
from driftbandits.numerics.horizon import horizon_of
from driftbandits.numerics.indices import ucb_index
from driftbandits.numerics.shares import share_of


class CusumUcbState(NamedTuple):
    """Everything counts from the arm's last alarm, except the alarms."""

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
        changes: Number of changes expected within the horizon (10,000 pulls if it is unknown).
        warm_up: First rewards of an arm; later ones are tested against their mean.
        drift: Change of the mean that is tolerated, as a share of the reward range.
        threshold: Threshold of the test; by default ln(horizon / changes) / (8 drift).
        exploration: Probability of a uniform arm; by default 0.1 sqrt(changes / horizon *
            ln(horizon / changes)).
        xi: Scales the square of the confidence bonus.
    """
    check.positive(changes=changes, drift=drift)
    check.integer(warm_up=warm_up)
    check.not_negative(xi=xi)
    length = max(horizon_of(spec) / changes, math.e)  # of the time between two changes
    if threshold is None:
        threshold = math.log(length) / (8 * drift)
    if exploration is None:
        exploration = 0.1 * math.sqrt(math.log(length) / length)
    check.positive(threshold=threshold)
    check.probability(exploration=exploration)

    def init(key: Key) -> CusumUcbState:
        counts, zeros = jnp.zeros(spec.num_arms, jnp.int32), jnp.zeros(spec.num_arms)
        return CusumUcbState(
            pulls=counts, sums=zeros, first_sums=zeros, up=zeros, down=zeros, alarms=counts
        )

    def act(
        key: Key, state: CusumUcbState, observation: Observation
    ) -> tuple[Decision, CusumUcbState]:
        index = ucb_index(state.sums, state.pulls, jnp.sum(state.pulls), xi)
        greedy = greedy_probabilities(index, observation.available)
        probabilities = with_exploration(greedy, exploration, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: CusumUcbState, arm: Array, reward: Array) -> CusumUcbState:
        gain = share_of(reward, spec.reward_range)
        pulled = jnp.arange(spec.num_arms) == arm
        tested = pulled & (state.pulls >= warm_up)
        rise = jnp.where(tested, gain - state.first_sums / warm_up, 0.0)
        up = jnp.where(tested, jnp.maximum(state.up + rise - drift, 0.0), state.up)
        down = jnp.where(tested, jnp.maximum(state.down - rise - drift, 0.0), state.down)
        alarm = tested & (jnp.maximum(up, down) >= threshold)
        seen = CusumUcbState(
            pulls=count_pull(state.pulls, arm),
            sums=state.sums + jnp.where(pulled, gain, 0.0),
            first_sums=state.first_sums + jnp.where(pulled & ~tested, gain, 0.0),
            up=up,
            down=down,
            alarms=state.alarms,
        )
        return forget(seen, alarm)

    return Policy(init, act, learn)


def forget(state: CusumUcbState, alarm: Array) -> CusumUcbState:
    """Restarts the arms with an alarm."""
    afresh: CusumUcbState = jax.tree.map(lambda value: jnp.where(alarm, 0, value), state)
    return afresh._replace(alarms=state.alarms + alarm)
