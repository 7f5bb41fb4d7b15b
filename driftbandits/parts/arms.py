"""Laws over the arms that are available, and a draw from them."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import Key

T = TypeVar("T")


def require_some(available: Array) -> None:
    """Refuses a mask without a single arm (where it can be looked at: not while tracing)."""
    if not isinstance(available, jax.core.Tracer) and not np.asarray(available).any():
        check.fail("available", "true for at least one arm", available.tolist())


def uniform_law(available: Array) -> Array:
    """Every available arm alike."""
    require_some(available)
    return available / jnp.sum(available)


def greedy_law(scores: Array, available: Array) -> Array:
    """All mass on the best available arm, shared between ties."""
    require_some(available)
    scores = jnp.where(available, scores, -jnp.inf)
    best = available & (scores == jnp.max(scores))
    return best / jnp.sum(best)


def softmax_law(logits: Array, available: Array) -> Array:
    """The Boltzmann law over the available arms."""
    require_some(available)
    return jax.nn.softmax(jnp.where(available, logits, -jnp.inf))


def draw(key: Key, law: Array) -> Array:
    """One arm from the law, by one uniform number; never one of probability zero.

    The uniform number is at most 1 - 2^-23, so its product with the total stays below the total.
    A law that is not a number, or nowhere positive, gives the arm -1, which the simulator refuses.
    """
    total = scan_arms(lambda total, mass: total + mass, jnp.zeros(()), law)
    level = jax.random.uniform(key) * total

    def pass_by(carry: tuple[Array, Array], mass: Array) -> tuple[Array, Array]:
        cumulative = carry[0] + mass
        return cumulative, carry[1] + (cumulative <= level)

    arm = scan_arms(pass_by, (jnp.zeros(()), jnp.int32(0)), law)[1]
    return jnp.where(total > 0, arm, -1)


def scan_arms(step: Callable[[T, Array], T], start: T, values: Array) -> T:
    """Goes from arm to arm: in one kernel where they are few, which jnp.cumsum never is."""

    def turn(carry: T, value: Array) -> tuple[T, None]:
        return step(carry, value), None

    return jax.lax.scan(turn, start, values, unroll=16)[0]


def set_arm(values: Array, arm: Array, value: Array) -> Array:
    """`values` with the row of one arm replaced: a masked copy, which vectorises over runs."""
    chosen = jnp.arange(values.shape[0]) == arm
    return jnp.where(chosen.reshape((-1,) + (1,) * (values.ndim - 1)), value, values)


def count_pull(pulls: Array, arm: Array) -> Array:
    """The pulls of every arm after one more of this arm."""
    return pulls + (jnp.arange(pulls.size) == arm)


def context_or_one(context: Array) -> Array:
    """The context, or a constant where the problem has none."""
    return context if context.shape[-1] else jnp.ones(1)
