"""Which arm is best where: the means of an environment over a grid of two-dimensional contexts."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import Environment, Key
from driftbandits.environments import build_environment

GRID = 161  # points from -1 to 1, along each axis


def best_arm_columns(
    environments: Sequence[tuple[str, str]], times: Sequence[int], seed: int = 0
) -> dict[str, np.ndarray]:
    """For every environment (name, as written), time and context: the best arm and its mean."""
    line = np.linspace(-1, 1, GRID, dtype=np.float32)
    x, y = (axis.ravel() for axis in np.meshgrid(line, line))
    contexts = np.stack([x, y], axis=1)[np.hypot(x, y) <= 1]
    parts = []
    for name, text in environments:
        for time in times:
            means = means_at(text, time, contexts, seed)
            parts.append(
                {
                    "x": contexts[:, 0],
                    "y": contexts[:, 1],
                    "best_arm": means.argmax(axis=1),
                    "mean": means.max(axis=1),
                    "environment": np.full(len(contexts), name),
                    "time": np.full(len(contexts), time, np.int32),
                }
            )
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def means_at(text: str, time: int, contexts: np.ndarray, seed: int) -> np.ndarray:
    """The arms' means for each context, after `time` pulls of the first arm."""
    return np.asarray(means_after(build_environment(text), jax.random.key(seed), time, contexts))


@partial(jax.jit, static_argnums=0)
def means_after(environment: Environment, key: Key, time: Array, contexts: Array) -> Array:
    """One program for all times."""
    state = jax.lax.fori_loop(
        0,
        time,
        lambda _, state: environment.advance(state, jnp.zeros((), jnp.int32)),
        environment.init(key),
    )
    return jax.vmap(environment.rewards, (None, None, 0))(key, state, contexts).mean
