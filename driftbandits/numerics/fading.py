"""Evidence that fades with every decision.

A reward counts from the moment of its pull: a late one weighs as much as if it had arrived at once,
and evidence fades even if rewards get lost.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check


def check_discount(discount: float) -> None:
    if not check.is_number(discount) or not 0 < discount <= 1:
        check.fail("discount", "a number in (0, 1]", discount)


def faded(discount: float, now: Array, pulled: Array) -> Array:
    """What is left of a reward's weight; both times are numbers of decisions."""
    return jnp.float32(discount) ** (now - pulled).astype(jnp.float32)
