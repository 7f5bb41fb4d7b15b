"""Probabilities of the available arms, and a draw of one arm from them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import Key
from driftbandits.numerics.made_again import arm_or_known


def require_some(available: Array) -> None:
    """Rejects a mask without any arm; while tracing the values are not known and not checked."""
    if not isinstance(available, jax.core.Tracer) and not np.asarray(available).any():
        check.fail("available", "true for at least one arm", available.tolist())


def uniform_probabilities(available: Array) -> Array:
    """The same probability for every available arm."""
    require_some(available)
    return available / jnp.sum(available)


def greedy_probabilities(scores: Array, available: Array) -> Array:
    """All mass on the best available arm, shared between ties."""
    require_some(available)
    scores = jnp.where(available, scores, -jnp.inf)
    best = available & (scores == jnp.max(scores))
    return best / jnp.sum(best)


def softmax_probabilities(logits: Array, available: Array) -> Array:
    """Boltzmann probabilities over the available arms."""
    require_some(available)
    return jax.nn.softmax(jnp.where(available, logits, -jnp.inf))


def with_exploration(probabilities: Array, share: float, available: Array) -> Array:
    """A uniform arm with probability `share`, else one drawn from `probabilities`."""
    return (1 - share) * probabilities + share * uniform_probabilities(available)


class Scan(NamedTuple):
    """The state of `draw_place` while it goes through the arms."""

    mass: Array  # () float32, of all arms so far
    arm: Array  # () int32, the next one
    last: Array  # () int32, the last one that has any mass
    chosen: Array  # () int32, arms whose cumulative mass is below the level


def draw(key: Key, probabilities: Array) -> Array:
    """One arm, or the known arm of a decision that is replayed."""
    return arm_or_known(draw_place(key, probabilities))


def draw_place(key: Key, probabilities: Array) -> Array:
    """One index, drawn with one uniform number; never one with probability zero.

    If rounding takes the level past the total mass, the last index with any mass is drawn.
    Probabilities that are NaN or all zero give -1, which the simulator rejects.
    """
    total = jnp.sum(probabilities)
    level = jax.random.uniform(key) * total

    def add_arm(scan: Scan, mass: Array) -> tuple[Scan, None]:
        cumulative = scan.mass + mass
        last = jnp.where(mass > 0, scan.arm, scan.last)
        return Scan(cumulative, scan.arm + 1, last, scan.chosen + (cumulative <= level)), None

    # One kernel if there are few arms; jnp.cumsum would cost more than the rest of a step.
    zero = jnp.int32(0)
    start = Scan(jnp.zeros(()), zero, zero, zero)
    end, _ = jax.lax.scan(add_arm, start, probabilities, unroll=16)
    arm = jnp.minimum(end.chosen, end.last)
    return jnp.where(jnp.isfinite(total) & (total > 0), arm, -1)


def set_arm(values: Array, arm: Array, value: Array) -> Array:
    """`values` with the row of one arm replaced: a masked copy, which vectorises over runs."""
    chosen = jnp.arange(values.shape[0]) == arm
    return jnp.where(chosen.reshape((-1,) + (1,) * (values.ndim - 1)), value, values)


def without_new(arms: Array, is_new: Array) -> Array:
    """Arms of past pulls, where those whose place has a new arm become -1, which is nobody."""
    return jnp.where((arms >= 0) & is_new[arms], -1, arms)


def count_pull(pulls: Array, arm: Array) -> Array:
    """The pulls of every arm after one more of this arm."""
    return pulls + (jnp.arange(pulls.size) == arm)


def context_or_one(context: Array) -> Array:
    """The context, or a constant where the problem has none."""
    return context if context.shape[-1] else jnp.ones(1)
