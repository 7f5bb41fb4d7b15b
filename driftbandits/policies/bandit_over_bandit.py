"""Bandit-over-bandit: Exp3 chooses the window of a sliding-window UCB, block by block.

    at a block's start: j ~ p,  p_j = (1 - gamma) w_j / sum(w) + gamma / J;  all rewards forgotten
    in the block: arm = argmax mean_k + sqrt(xi ln(min(n, window_j)) / pulls_k)
        over the last window_j rewards of the block, n rewards so far
    at its end: w_j *= exp(gamma / (J p_j) * sum of the block's rewards / block)

The J windows grow geometrically; the longest is the block. Rewards are clipped to
`spec.reward_range` and scaled to [0, 1]. A late reward counts for the window under which its arm
was chosen, and for the means of the block in which it arrives.

Paper: Cheung, Simchi-Levi & Zhu (2019), "Learning to optimize under non-stationarity".

Differences from the paper: the paper is about linear bandits. We use its counterpart for arms
without features as the base policy and K for d, so a block is K sqrt(T) decisions. Sums of rewards
are in [0, block] and need no other scaling. The shortest window is 20 K, not 1: with a window
hardly longer than K the base policy pulls at random, and Exp3 pays for trying it. The narrow bonus
(xi = 0.3) suits such short windows.

Use it when changes are frequent and you do not know how many there will be. Not when they are few:
every block starts from scratch, and learning which window is best takes hundreds of blocks. For
five changes in 10,000 pulls take `glr_ucb`, or even `ucb`.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, draw_place, greedy_probabilities, without_new
from driftbandits.numerics.exp3 import check_gamma, exp3_gamma, normalised
from driftbandits.numerics.horizon import horizon_of
from driftbandits.numerics.indices import ucb_index
from driftbandits.numerics.shares import share_of

PULLS = 20  # of every arm, on average, in the shortest window


class Recent(NamedTuple):
    """The block's last rewards."""

    arms: Array  # (block,) int32, a ring buffer
    rewards: Array  # (block,) float32, the same
    seen: Array  # () int32, rewards in this block
    pulls: Array  # (num_arms,) int32, within the window
    sums: Array  # (num_arms,) float32, within the window


class Master(NamedTuple):
    logits: Array  # (windows,) float32, ln w
    chosen: Array  # () int32, this block's window
    probability: Array  # () float32, of that choice


class BanditOverBanditState(NamedTuple):
    master: Master
    recent: Recent
    step: Array  # () int32, decisions in this block


class BanditOverBanditTicket(NamedTuple):
    arm: Array  # () int32
    chosen: Array  # () int32, the window in force
    probability: Array  # () float32, with which it was chosen


def bandit_over_bandit(
    spec: BanditSpec,
    *,
    block: int | None = None,
    windows: int | None = None,
    shortest: int | None = None,
    gamma: float | None = None,
    xi: float = 0.3,
) -> Policy:
    """Sliding-window UCB whose window Exp3 chooses again in every block.

    Args:
        block: Decisions between two choices of the window; by default num_arms sqrt(horizon), with
            10,000 for an unknown horizon.
        windows: Number of windows to choose from; by default ceil(ln(block / shortest)) + 1.
        shortest: Length of the shortest window; the longest is the block. By default 20 num_arms.
        gamma: Exploration in the choice of windows; by default sqrt(windows ln(windows) / ((e - 1)
            ceil(horizon / block))).
        xi: Scales the square of the confidence bonus.
    """
    num_arms, horizon = spec.num_arms, horizon_of(spec)
    if block is None:
        block = min(math.ceil(num_arms * math.sqrt(horizon)), horizon)
    check.integer(block=block)
    if shortest is None:
        shortest = min(PULLS * num_arms, block)
    check.integer(at_most=block, shortest=shortest)
    if windows is None:
        windows = math.ceil(math.log(block / shortest)) + 1
    check.integer(windows=windows)
    check.not_negative(xi=xi)
    if gamma is None:
        gamma = exp3_gamma(windows, math.ceil(horizon / block)) if windows > 1 else 1.0
    check_gamma(gamma)
    lengths = jnp.array(geometric_windows(shortest, block, windows), jnp.int32)

    def init(key: Key) -> BanditOverBanditState:
        master = Master(jnp.zeros(windows), jnp.int32(0), jnp.float32(1 / windows))
        return BanditOverBanditState(master, no_rewards(block, num_arms), jnp.int32(0))

    def act(
        key: Key, state: BanditOverBanditState, observation: Observation
    ) -> tuple[Decision, BanditOverBanditState]:
        window_key, arm_key = jax.random.split(key)
        starting = state.step == 0
        master = jax.tree.map(
            lambda new, old: jnp.where(starting, new, old),
            choose_window(window_key, state.master.logits, gamma),
            state.master,
        )
        recent = forget_if(starting, state.recent)
        time = jnp.minimum(recent.seen, lengths[master.chosen])
        index = ucb_index(recent.sums, recent.pulls, time, xi)
        probabilities = greedy_probabilities(index, observation.available)
        arm = draw(arm_key, probabilities)
        ticket = BanditOverBanditTicket(arm, master.chosen, master.probability)
        step = (state.step + 1) % block
        return Decision(arm, probabilities, ticket), BanditOverBanditState(master, recent, step)

    def learn(
        state: BanditOverBanditState, ticket: BanditOverBanditTicket, reward: Array
    ) -> BanditOverBanditState:
        gain = share_of(reward, spec.reward_range)
        credit = gamma / (windows * block) * gain / ticket.probability
        played = jnp.arange(windows) == ticket.chosen
        logits = state.master.logits + jnp.where(played, credit, 0.0)
        length = lengths[state.master.chosen]
        return state._replace(
            master=state.master._replace(logits=logits),
            recent=slide(state.recent, ticket.arm, gain, length),
        )

    def forget(
        old: BanditOverBanditState, new: BanditOverBanditState, is_new: Array
    ) -> BanditOverBanditState:
        arms = without_new(new.recent.arms, is_new)
        return new._replace(recent=new.recent._replace(arms=arms))

    return Policy(init, act, learn, forget=forget)


def geometric_windows(shortest: int, longest: int, count: int) -> list[int]:
    """From the shortest to the longest; only the longest if there is one window."""
    shares = [i / (count - 1) for i in range(count)] if count > 1 else [1.0]
    return [round(shortest * (longest / shortest) ** share) for share in shares]


def choose_window(key: Key, logits: Array, gamma: float) -> Master:
    """Exp3's draw; the logits are shifted to stay near zero, which changes nothing."""
    logits = normalised(logits)
    probabilities = (1 - gamma) * jax.nn.softmax(logits) + gamma / logits.size
    chosen = draw_place(key, probabilities)
    own = jnp.arange(probabilities.size) == chosen
    return Master(logits, chosen, jnp.sum(probabilities, where=own))


def no_rewards(block: int, num_arms: int) -> Recent:
    return Recent(
        arms=jnp.zeros(block, jnp.int32),
        rewards=jnp.zeros(block),
        seen=jnp.int32(0),
        pulls=jnp.zeros(num_arms, jnp.int32),
        sums=jnp.zeros(num_arms),
    )


def forget_if(starting: Array, recent: Recent) -> Recent:
    """Forgets the rewards at a block's start; the ring buffers are overwritten later."""
    return recent._replace(
        seen=jnp.where(starting, 0, recent.seen),
        pulls=jnp.where(starting, 0, recent.pulls),
        sums=jnp.where(starting, 0.0, recent.sums),
    )


def slide(recent: Recent, arm: Array, gain: Array, length: Array) -> Recent:
    """The window after one more reward; rounding errors of the sums end with the block."""
    size, arms = recent.arms.size, jnp.arange(recent.pulls.size)
    oldest = (recent.seen - length) % size
    full = recent.seen >= length
    lost = (arms == recent.arms[oldest]) & full
    came = arms == arm
    slot = recent.seen % size
    added = jnp.where(came, gain, 0.0)
    removed = jnp.where(lost, recent.rewards[oldest], 0.0)
    return Recent(
        arms=recent.arms.at[slot].set(arm),
        rewards=recent.rewards.at[slot].set(gain),
        seen=recent.seen + 1,
        pulls=recent.pulls + came - lost,
        sums=recent.sums + added - removed,
    )
