"""Which of two tracks to follow: Thompson sampling by what following each has paid.

Only steps in which they name different arms count, and old ones fade.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtr

DOUBT = 1.0  # rewards that each starts with
MEMORY = 0.9998


class Gate(NamedTuple):
    followed: Array  # (2,) float32, how often each was followed, faded
    mean: Array  # (2,) float32, what it paid
    squares: Array  # () float32, of the distances from the means, faded


def new_gate() -> Gate:
    return Gate(jnp.zeros(2), jnp.zeros(2), jnp.zeros(()))


def chance_of_second(gate: Gate, reward_variance: Array, head_start: float | None = None) -> Array:
    """The probability that the second track pays more.

    With a head start of the first, in deviations of what the second has paid, it must pay more by
    that much.
    """
    noise = (gate.squares + 2 * DOUBT * reward_variance) / (jnp.sum(gate.followed) + 2 * DOUBT)
    deviation = jnp.sqrt(noise * jnp.sum(1 / (gate.followed + DOUBT)))
    ahead = gate.mean[1] - gate.mean[0]
    if head_start is not None:
        ahead -= head_start * jnp.sqrt(noise / (gate.followed[1] + DOUBT))
    return ndtr(ahead / deviation)


def update_gate(gate: Gate, follows: Array, reward: Array, judges: Array) -> Gate:
    """After a reward; `follows` says whose best arm was pulled. A single track needs no gate."""
    if follows.size == 1:
        return gate
    counts = judges & (follows[0] != follows[1])
    followed = MEMORY * gate.followed + follows
    apart = reward - gate.mean
    mean = gate.mean + jnp.where(follows, apart / jnp.maximum(followed, 1.0), 0.0)
    squares = MEMORY * gate.squares + jnp.sum(apart * (reward - mean), where=follows)
    return Gate(
        jnp.where(counts, followed, gate.followed),
        jnp.where(counts, mean, gate.mean),
        jnp.where(counts, squares, gate.squares),
    )
