"""FEWA: filtering on expanding windows, for rotting bandits.

    A = the arms; for h = 1, 2, ...:
        keep the arms of A whose last h rewards have a mean of at least max_A mean - 2 c(h)
        stop when one arm is left, or when an arm of A has no more than h pulls
    pull the arm of A with the fewest pulls;   c(h) = sqrt(2 sigma^2 alpha ln(t) / h)

t is the number of rewards so far, and sigma is `spec.noise`.

Paper: Seznec, Locatelli, Carpentier, Lazaric & Valko (2019), "Rotting bandits are no harder than
stochastic ones".

Differences from the paper: the constants inside the logarithm are left out, as in the authors' own
experiments, and no window is longer than `longest`, which bounds memory and time.

Use it when arms wear out as they are pulled and nothing else is known; it needs no window length.
Not when means rise again, nor over long horizons, where a step becomes slow: use `eff_fewa`.

It ignores the context.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities, require_some
from driftbandits.numerics.windows import (
    LONGEST,
    Windows,
    confidence,
    empty_windows,
    last_rewards,
    remember,
)

STRIDE = 32  # windows processed together


class Filter(NamedTuple):
    """The state of the filter as windows get longer."""

    active: Array  # (num_arms,) bool
    sums: Array  # (num_arms,) float32, of the last h rewards
    h: Array  # () int32, windows done


def fewa(spec: BanditSpec, *, alpha: float = 0.06, longest: int | None = None) -> Policy:
    """Filtering on expanding window averages, made for rewards that only fall.

    Args:
        alpha: Scales the confidence bonus (theory asks for 4, practice for 0.06).
        longest: Longest window; by default the horizon, but at most 100,000. Memory is num_arms
            times this.
    """
    check.positive(alpha=alpha)
    size = min(spec.horizon or LONGEST, LONGEST) if longest is None else longest
    check.integer(longest=size)

    def init(key: Key) -> Windows:
        return empty_windows(spec.num_arms, size)

    def act(key: Key, windows: Windows, observation: Observation) -> tuple[Decision, Windows]:
        require_some(observation.available)
        bonus = filter_bonus(alpha, spec.noise, windows.pulls)
        active = filter_arms(windows, observation.available, bonus, size)
        probabilities = greedy_probabilities(-windows.pulls.astype(jnp.float32), active)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), windows

    def learn(windows: Windows, arm: Array, reward: Array) -> Windows:
        return remember(windows, arm, reward)

    return Policy(init, act, learn)


def filter_bonus(alpha: float, noise: float, pulls: Array) -> Array:
    """2 h c(h) / sqrt(h): an arm stays while its sum is within sqrt(h) times this of the best."""
    return 2 * confidence(alpha, noise, pulls)


def filter_arms(windows: Windows, available: Array, bonus: Array, longest: int) -> Array:
    """The arms that are still in A at the end.

    At most windows no arm leaves A, so windows are processed by strides: the loop goes to the first
    window at which one leaves, or to the end of the stride.
    """
    num_arms = available.size
    start = Filter(available, jnp.zeros(num_arms), jnp.int32(0))

    def usable(state: Filter) -> Array:
        fewest = jnp.min(windows.pulls, where=state.active, initial=longest)
        return jnp.where(jnp.sum(state.active) > 1, fewest, 0)

    def unfinished(state: Filter) -> Array:
        return state.h < usable(state)

    def proceed(state: Filter) -> Filter:
        recent = last_rewards(windows, state.h + 1, STRIDE)
        sums = state.sums[:, None] + jnp.cumsum(recent, axis=1)
        lengths = state.h + 1 + jnp.arange(STRIDE)
        best = jnp.max(sums, axis=0, where=state.active[:, None], initial=-jnp.inf)
        close = sums >= best - bonus * jnp.sqrt(lengths.astype(jnp.float32))
        stays = close | ~state.active[:, None]
        event = ~stays.all(axis=0) | (lengths == usable(state))
        at = jnp.where(event.any(), jnp.argmax(event), STRIDE - 1)
        return Filter(state.active & close[:, at], sums[:, at], lengths[at])

    return jax.lax.while_loop(unfinished, proceed, start).active
