"""Sliding-window Thompson sampling: Beta posteriors of the last `window` pulls.

    theta_k ~ Beta(1 + wins_k, 1 + losses_k), counted over the last `window` pulls of all arms
    arm = argmax theta

An arm that is not in the window has the prior Beta(1, 1). Rewards other than 0 and 1 are clipped to
`spec.reward_range`, scaled to [0, 1] and turned into 0 or 1 at random, as in `thompson`.

Paper: Trovo, Paladino, Restelli & Gatti (2020), "Sliding-window Thompson sampling for
non-stationary settings".

Differences from the paper: the window holds decisions. A decision whose reward has not arrived
leaves its place empty, and a reward that arrives after its decision has left the window is not
counted. The default window, 4 sqrt(T ln T), is ours and borrowed from sliding-window UCB; T is the
horizon, or 10,000 if it is unknown.

Use it when Bernoulli arms jump at unknown times: what is older than the window is forgotten
completely, where a discount leaves a tail. Not when nothing drifts: it never stops exploring. Not
when there are nearly as many arms as pulls in the window.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import without_new
from driftbandits.numerics.bernoulli_thompson import Toss, choose_arm, is_won
from driftbandits.numerics.horizon import usual_window

EMPTY = -1


class SwThompsonState(NamedTuple):
    outcomes: Array  # (window,) int32, ring buffer: 2 arm + (1 if won), or EMPTY
    wins: Array  # (num_arms,) int32, in the window
    losses: Array  # (num_arms,) int32, in the window
    time: Array  # () int32, decisions


class WindowToss(NamedTuple):
    toss: Toss
    time: Array  # () int32, decisions before this one


def sw_thompson(spec: BanditSpec, *, window: int | None = None) -> Policy:
    """Thompson sampling with Beta posteriors of the last pulls only.

    Args:
        window: Number of the last pulls that count; by default 4 sqrt(T ln T) for the horizon T.
    """
    if window is None:
        window = usual_window(spec)
    check.integer(window=window)
    size = min(window, spec.horizon or window)

    def init(key: Key) -> SwThompsonState:
        nothing = jnp.zeros(spec.num_arms, jnp.int32)
        return SwThompsonState(jnp.full(size, EMPTY, jnp.int32), nothing, nothing, jnp.int32(0))

    def act(
        key: Key, state: SwThompsonState, observation: Observation
    ) -> tuple[Decision, SwThompsonState]:
        decision = choose_arm(key, state.wins, state.losses, observation.available)
        ticket = WindowToss(decision.ticket, state.time)
        return decision._replace(ticket=ticket), make_room(state)

    def learn(state: SwThompsonState, ticket: WindowToss, reward: Array) -> SwThompsonState:
        slot = ticket.time % size
        won = is_won(ticket.toss, reward, spec.reward_range)
        in_time = state.time - ticket.time <= size
        outcome = jnp.where(in_time, 2 * ticket.toss.arm + won, EMPTY)
        kept = jnp.where(in_time, outcome, state.outcomes[slot])
        return count(state._replace(outcomes=state.outcomes.at[slot].set(kept)), outcome, 1)

    def forget(old: SwThompsonState, new: SwThompsonState, is_new: Array) -> SwThompsonState:
        arms = without_new(new.outcomes // 2, is_new)  # EMPTY // 2 is nobody
        return new._replace(outcomes=jnp.where(arms < 0, EMPTY, new.outcomes))

    return Policy(init, act, learn, forget=forget)


def make_room(state: SwThompsonState) -> SwThompsonState:
    """One more decision has been made: the oldest one leaves, and an empty place takes over."""
    slot = state.time % state.outcomes.size
    state = count(state, state.outcomes[slot], -1)
    return state._replace(outcomes=state.outcomes.at[slot].set(EMPTY), time=state.time + 1)


def count(state: SwThompsonState, outcome: Array, times: int) -> SwThompsonState:
    """The counts with an outcome added, or taken off."""
    arms = jnp.arange(state.wins.size)
    return state._replace(
        wins=state.wins + times * (outcome == 2 * arms + 1),
        losses=state.losses + times * (outcome == 2 * arms),
    )
