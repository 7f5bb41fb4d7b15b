"""Work that is due only now and then, and costs nothing in between."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

State = TypeVar("State")


def occasionally(due: Array, work: Callable[[State], State], state: State) -> State:
    """`work(state)` where due, else `state`.

    It is a loop of one turn or none. A condition would do the work at every step, since under vmap
    both branches run. The barrier ties the work to the loop's counter: otherwise XLA would move
    what does not depend on it out of the loop, and do it at every step.
    """

    def turn(i: Array, state: State) -> State:
        _, state = jax.lax.optimization_barrier((i, state))
        return work(state)

    return jax.lax.fori_loop(0, due.astype(jnp.int32), turn, state)
