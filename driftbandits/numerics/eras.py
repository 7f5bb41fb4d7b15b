"""The eras of environments: whole numbers that change when a learner should recover."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from driftbandits.core import Environment, State

Era = Callable[[State], Array]


def best_arm(means: Callable[[State], Array]) -> Era:
    """An era ends when another arm becomes the best."""
    return lambda state: jnp.argmax(means(state)).astype(jnp.int32)


def era_of_inner(environment: Environment) -> Era | None:
    """The era of an environment whose state is the field `inner` of a transformed state."""
    era = environment.era
    if era is None:
        return None
    inner_era = era
    return lambda state: inner_era(state.inner)
