"""Rotting arms: an arm wears out by being pulled.

    by default      mean_1 = 0.5;   mean_2 = 1.0 for its first 7500 pulls, then 0.4
    law step        mean_k(n) = start_k while n < life_k, then end_k
    law geometric   mean_k(n) = start_k rho_k^n,   rho_k = exp(-1 / life_k)
    law power       mean_k(n) = start_k (1 + n / life_k)^(-1/2)

where n is the number of earlier pulls of arm k itself, and rewards are Gaussian with variance 0.2.
With `num_arms` or another law, start_k ~ U(0, 1), end_k ~ U(0, start_k) and the whole number
life_k ~ U{1, ..., 2 life - 1} are drawn once per run.

Examples: an advertisement that everybody has seen, a joke, a mine.

Paper: Levine, Crammer & Mannor (2017), "Rotting bandits". The default is the problem of Rotman &
Wolf (2023), section 4.

Use it when arms should lose with every pull. Not when they should recover: see `recharging`, or
`fatigue` for pulls in a row.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards, State
from driftbandits.environments.bernoulli import no_context
from driftbandits.numerics.eras import best_arm

LAWS = ("step", "geometric", "power")
LONGEST = 10**9  # int32 can count twice as many pulls


class RottingState(NamedTuple):
    pulls: Array  # (num_arms,) int32
    start: Array  # (num_arms,) float32, mean of a fresh arm
    end: Array  # (num_arms,) float32, mean of a worn-out arm, by the law step
    life: Array  # (num_arms,) int32


def rotting(
    *, num_arms: int | None = None, law: str = "step", life: int = 7500, variance: float = 0.2
) -> Environment:
    """Gaussian arms that wear out: by default two, and 1.0 falls to 0.4 after 7500 pulls of it.

    Args:
        num_arms: Number of arms, drawn per run; by default the two arms of the paper (or two drawn
            arms if the law is not step).
        law: How a mean falls with the pulls of its arm: step, geometric or power.
        life: Pulls until the paper's arm falls; if arms are drawn, the mean of their lives.
        variance: Variance of the rewards.
    """
    check.known("law", law, LAWS)
    check.integer(life=life, at_most=LONGEST)
    check.positive(variance=variance)
    if num_arms is None and law == "step":
        return two_arms(life, variance**0.5)
    num_arms = 2 if num_arms is None else num_arms
    check.integer(num_arms=num_arms)
    return drawn_arms(num_arms, law, life, variance**0.5)


def two_arms(life: int, deviation: float) -> Environment:
    """The problem of the paper; its state is the pulls of the two arms."""

    def init(key: Key) -> Array:
        return jnp.zeros(2, jnp.int32)

    def means(pulls: Array) -> Array:
        return jnp.stack([jnp.float32(0.5), jnp.where(pulls[1] < life, 1.0, 0.4)])

    def advance(pulls: Array, arm: Array) -> Array:
        return pulls + (jnp.arange(2) == arm)

    return gaussian_arms(2, deviation, init, means, advance, best_arm(means))


def drawn_arms(num_arms: int, law: str, life: int, deviation: float) -> Environment:
    def init(key: Key) -> RottingState:
        start_key, end_key, life_key = jax.random.split(key, 3)
        start = jax.random.uniform(start_key, (num_arms,))
        end = start * jax.random.uniform(end_key, (num_arms,))
        lives = jax.random.randint(life_key, (num_arms,), 1, 2 * life)
        return RottingState(jnp.zeros(num_arms, jnp.int32), start, end, lives)

    def means(state: RottingState) -> Array:
        if law == "step":
            return jnp.where(state.pulls < state.life, state.start, state.end)
        age = state.pulls / state.life
        return state.start * (jnp.exp(-age) if law == "geometric" else (1 + age) ** -0.5)

    def advance(state: RottingState, arm: Array) -> RottingState:
        return state._replace(pulls=state.pulls + (jnp.arange(num_arms) == arm))

    era = best_arm(means) if law == "step" else None
    return gaussian_arms(num_arms, deviation, init, means, advance, era)


def gaussian_arms(
    num_arms: int,
    deviation: float,
    init: Callable[[Key], State],
    means: Callable[[State], Array],
    advance: Callable[[State, Array], State],
    era: Callable[[State], Array] | None = None,
) -> Environment:
    """Gaussian arms, always available, whose means in [0, 1] follow from the state."""

    def observe(key: Key, state: State) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, state: State, context: Array) -> Rewards:
        mean = means(state)
        return Rewards(mean + deviation * jax.random.normal(key, (num_arms,)), mean)

    spec = BanditSpec(num_arms, noise=deviation)
    return Environment(spec, init, observe, rewards, advance, era)
