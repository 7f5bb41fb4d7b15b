"""Discounted Thompson sampling: Beta posteriors whose counts fade.

    theta_k ~ Beta(1 + wins_k, 1 + losses_k);   arm = argmax theta
    then wins_k, losses_k <- discount * (wins_k, losses_k) for ALL arms, and the reward adds 1

The prior does not fade: an arm that is not pulled returns to Beta(1, 1) and is tried again. Rewards
other than 0 and 1 are clipped to `spec.reward_range`, scaled to [0, 1] and turned into 0 or 1 at
random, as in `thompson`.

Paper: Raj & Kalyani (2017), "Taming non-stationary bandits: a Bayesian approach".

Differences from the paper: a step is a decision. A reward that arrives n decisions late adds
discount^n, which is what would be left of it had it arrived at once.

Use it when Bernoulli arms drift gradually, or jump at unknown times, and a mean stays about the
same for 1 / (1 - discount) pulls. It is cheap, and hard to beat there. Not when nothing drifts: it
never stops exploring, and each forgotten arm costs a pull now and then. Not when rewards vary
little within a wide range: turning them into 0 or 1 adds noise, which `gaussian_thompson` with
discount=0.999 avoids.

It ignores the context.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.bernoulli_thompson import Toss, choose_arm, is_won
from driftbandits.numerics.fading import check_discount, faded


class DiscountedThompsonState(NamedTuple):
    wins: Array  # (num_arms,) float32
    losses: Array  # (num_arms,) float32
    time: Array  # () int32, decisions


class DiscountedToss(NamedTuple):
    toss: Toss
    time: Array  # () int32, decisions with this one


def discounted_thompson(spec: BanditSpec, *, discount: float = 0.999) -> Policy:
    """Thompson sampling with Beta posteriors that forget at a steady rate.

    Args:
        discount: What is left of the evidence after one more decision, in (0, 1]; 1 never forgets.
    """
    check_discount(discount)

    def init(key: Key) -> DiscountedThompsonState:
        nothing = jnp.zeros(spec.num_arms)
        return DiscountedThompsonState(nothing, nothing, jnp.int32(0))

    def act(
        key: Key, state: DiscountedThompsonState, observation: Observation
    ) -> tuple[Decision, DiscountedThompsonState]:
        decision = choose_arm(key, state.wins, state.losses, observation.available)
        time = state.time + 1
        ticket = DiscountedToss(decision.ticket, time)
        state = DiscountedThompsonState(discount * state.wins, discount * state.losses, time)
        return decision._replace(ticket=ticket), state

    def learn(
        state: DiscountedThompsonState, ticket: DiscountedToss, reward: Array
    ) -> DiscountedThompsonState:
        pulled = jnp.arange(spec.num_arms) == ticket.toss.arm
        won = is_won(ticket.toss, reward, spec.reward_range)
        weight = faded(discount, state.time, ticket.time)
        return state._replace(
            wins=state.wins + jnp.where(pulled & won, weight, 0.0),
            losses=state.losses + jnp.where(pulled & ~won, weight, 0.0),
        )

    return Policy(init, act, learn)
