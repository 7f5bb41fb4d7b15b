"""Bandit-over-bandit: Exp3 chooses the window of a sliding-window UCB, block by block.

    at a block's start: j ~ p,  p_j = (1 - gamma) w_j / sum(w) + gamma / J;  all rewards forgotten
    in the block: arm = argmax mean_k + sqrt(xi ln(min(n, window_j)) / pulls_k)
        over the last window_j rewards of the block, n rewards so far
    at its end: w_j *= exp(gamma / (J p_j) * sum of the block's rewards / block)

Cheung, Simchi-Levi & Zhu (2019), "Learning to optimize under non-stationarity". The J windows are
geometric, the longest is the block. Rewards are clipped to `spec.reward_range` and scaled to
[0, 1]. A reward that comes late still counts for the window under which its arm was chosen, and
for the means of the block in which it comes.

Differences from the paper: it is about linear bandits; the base policy is its counterpart for arms
without features, and d is K, so that a block is K sqrt(T) decisions. Sums of rewards need no
other scaling, for they are in [0, block]. The shortest window is 20 K, not 1: one that is hardly
longer than K makes the base policy pull at random, and Exp3 would pay for trying it. A narrow
bonus (xi = 0.3) suits windows as short as these.

Use it when changes are many and nothing is known about their number. Not when they are few: every
block learns from nothing, and the choice among the windows takes hundreds of blocks to learn; five
changes in 10000 pulls are better left to glr_ucb, or even to ucb.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import draw, greedy_law
from driftbandits.parts.horizon import horizon_of
from driftbandits.parts.indices import ucb_index
from driftbandits.parts.shares import share_of

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
    """Sliding-window UCB whose window is chosen by Exp3, anew in every block.

    Args:
        block: decisions between two choices; none is num_arms sqrt(horizon),
            with a horizon of 10000 where it is unknown.
        windows: to choose from; none is ceil(ln(block / shortest)) + 1.
        shortest: of them, where the longest is the block; none is 20 num_arms.
        gamma: exploration of the choice of windows; none is
            sqrt(windows ln(windows) / ((e - 1) ceil(horizon / block))).
        xi: scales the square of the confidence bonus.
    """
    num_arms, horizon = spec.num_arms, horizon_of(spec)
    if block is None:
        block = min(math.ceil(num_arms * math.sqrt(horizon)), horizon)
    check.whole(block=block)
    if shortest is None:
        shortest = min(PULLS * num_arms, block)
    check.whole(at_most=block, shortest=shortest)
    if windows is None:
        windows = math.ceil(math.log(block / shortest)) + 1
    check.whole(windows=windows)
    check.not_negative(xi=xi)
    if gamma is None:
        gamma = exp3_gamma(windows, math.ceil(horizon / block))
    if not check.is_number(gamma) or not 0 < gamma <= 1:
        check.fail("gamma", "a share in (0, 1]", gamma)
    lengths = jnp.array(geometric_windows(shortest, block, windows), jnp.int32)

    def init(key: Key) -> BanditOverBanditState:
        nothing = jnp.int32(0)
        master = Master(jnp.zeros(windows), nothing, jnp.float32(1 / windows))
        recent = Recent(
            jnp.zeros(block, jnp.int32),
            jnp.zeros(block),
            nothing,
            jnp.zeros(num_arms, jnp.int32),
            jnp.zeros(num_arms),
        )
        return BanditOverBanditState(master, recent, nothing)

    def act(
        key: Key, state: BanditOverBanditState, context: Array, available: Array
    ) -> tuple[Decision, BanditOverBanditState]:
        window_key, arm_key = jax.random.split(key)
        starting = state.step == 0
        master = jax.tree.map(
            lambda new, old: jnp.where(starting, new, old),
            choose_window(window_key, state.master.logits, gamma),
            state.master,
        )
        recent = state.recent._replace(
            seen=jnp.where(starting, 0, state.recent.seen),
            pulls=jnp.where(starting, 0, state.recent.pulls),
            sums=jnp.where(starting, 0.0, state.recent.sums),
        )
        time = jnp.minimum(recent.seen, lengths[master.chosen])
        law = greedy_law(ucb_index(recent.sums, recent.pulls, time, xi), available)
        arm = draw(arm_key, law)
        ticket = BanditOverBanditTicket(arm, master.chosen, master.probability)
        step = (state.step + 1) % block
        return Decision(arm, law, ticket), BanditOverBanditState(master, recent, step)

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

    return Policy(init, act, learn)


def exp3_gamma(choices: int, rounds: int) -> float:
    """Exp3's exploration for so many rounds; 1 where there is nothing to choose."""
    wanted = math.sqrt(choices * math.log(choices) / ((math.e - 1) * rounds))
    return min(wanted, 1.0) if choices > 1 else 1.0


def geometric_windows(shortest: int, longest: int, count: int) -> list[int]:
    """From the shortest to the longest; the longest alone where there is to be only one."""
    shares = [i / (count - 1) for i in range(count)] if count > 1 else [1.0]
    return [round(shortest * (longest / shortest) ** share) for share in shares]


def choose_window(key: Key, logits: Array, gamma: float) -> Master:
    """Exp3's draw; the logits are shifted to stay near zero, which changes nothing."""
    logits = logits - jnp.max(logits)
    law = (1 - gamma) * jax.nn.softmax(logits) + gamma / logits.size
    chosen = draw(key, law)
    return Master(logits, chosen, jnp.sum(law, where=jnp.arange(law.size) == chosen))


def slide(recent: Recent, arm: Array, gain: Array, length: Array) -> Recent:
    """The window after one more reward; what rounding adds to the sums ends with the block."""
    size, arms = recent.arms.size, jnp.arange(recent.pulls.size)
    oldest = (recent.seen - length) % size
    full = recent.seen >= length
    lost = (arms == recent.arms[oldest]) & full
    came = arms == arm
    slot = recent.seen % size
    return Recent(
        recent.arms.at[slot].set(arm),
        recent.rewards.at[slot].set(gain),
        recent.seen + 1,
        recent.pulls + came - lost,
        recent.sums + jnp.where(came, gain, 0.0) - jnp.where(lost, recent.rewards[oldest], 0.0),
    )
