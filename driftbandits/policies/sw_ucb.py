"""SW-UCB: upper confidence bounds from the last `window` rewards only.

    index_k = mean_k + scale * sqrt(xi ln(min(t, window)) / pulls_k)      over the window;
    infinite where the window holds no reward of the arm

All arms share the window: a reward enters it on arrival, however late, and pushes out the oldest
one, of whichever arm. t is the number of rewards so far. `scale` (B in the paper) is the width of
`spec.reward_range` by default. The default window is 4 sqrt(T ln T), but at most T, where T is the
horizon, or 10,000 if it is unknown.

Paper: Garivier & Moulines (2011), "On upper-confidence bound policies for switching bandit
problems".

Use it when the means jump now and then, or move little within a window, and you know roughly how
fast. Not with many arms: an arm that has dropped out of the window is tried again at once, so every
arm costs pulls in every window.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities, without_new
from driftbandits.numerics.horizon import usual_window


class SwUcbState(NamedTuple):
    arms: Array  # (window,) int32, ring buffer; -1 where there is none yet
    rewards: Array  # (window,) float32, ring buffer
    slot: Array  # () int32, where the next reward goes
    pulls: Array  # (num_arms,) int32, in the window
    sums: Array  # (num_arms,) float32, in the window
    lap: Array  # (num_arms,) float32, sums since the ring's first slot


def sw_ucb(
    spec: BanditSpec, *, window: int | None = None, xi: float = 0.6, scale: float | None = None
) -> Policy:
    """Upper confidence bounds over a sliding window, for means that jump.

    Args:
        window: Number of the last rewards that count, over all arms together; by default 4 sqrt(T
            ln T) for the horizon T, but at most T.
        xi: Factor inside the square root of the bonus.
        scale: Scale of the bonus; by default the width of the reward range.
    """
    low, high = spec.reward_range
    scale = high - low if scale is None else scale
    size = usual_window(spec) if window is None else window
    check.integer(window=size)
    check.not_negative(xi=xi, scale=scale)
    everyone = jnp.arange(spec.num_arms)

    def init(key: Key) -> SwUcbState:
        nothing = jnp.zeros(spec.num_arms)
        pulls = jnp.zeros(spec.num_arms, jnp.int32)
        nobody = jnp.full(size, -1, jnp.int32)
        return SwUcbState(
            arms=nobody,
            rewards=jnp.zeros(size),
            slot=jnp.int32(0),
            pulls=pulls,
            sums=nothing,
            lap=nothing,
        )

    def act(key: Key, state: SwUcbState, observation: Observation) -> tuple[Decision, SwUcbState]:
        pulls = state.pulls
        held = jnp.maximum(jnp.sum(pulls), 1).astype(jnp.float32)  # min(t, window)
        index = state.sums / pulls + scale * jnp.sqrt(xi * jnp.log(held) / pulls)
        probabilities = greedy_probabilities(
            jnp.where(pulls == 0, jnp.inf, index), observation.available
        )
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: SwUcbState, arm: Array, reward: Array) -> SwUcbState:
        slot = state.slot
        comes, goes = everyone == arm, everyone == state.arms[slot]
        gain = jnp.where(comes, reward, 0.0)
        loss = jnp.where(goes, state.rewards[slot], 0.0)
        lap = jnp.where(slot == 0, 0.0, state.lap) + gain
        # Adding and subtracting accumulates rounding errors. At the end of a lap the window holds
        # exactly what was added during the lap, so the sums restart from that.
        sums = jnp.where(slot == size - 1, lap, state.sums + gain - loss)
        return SwUcbState(
            arms=state.arms.at[slot].set(arm),
            rewards=state.rewards.at[slot].set(reward),
            slot=(slot + 1) % size,
            pulls=state.pulls + comes - goes,
            sums=sums,
            lap=lap,
        )

    def forget(old: SwUcbState, new: SwUcbState, is_new: Array) -> SwUcbState:
        return new._replace(arms=without_new(new.arms, is_new))

    return Policy(init, act, learn, forget=forget)
