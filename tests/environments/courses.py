"""What the tests of environments share: the course of a world over some pulls."""

import jax
import jax.numpy as jnp
import numpy as np

from driftbandits import build_environment
from driftbandits.core import Environment

KEY = jax.random.key(7)


def course(choice: str | Environment, steps: int, arm: int = 0, seed: int = 7) -> dict:
    """What an environment shows, pays and is, over some pulls of one arm."""
    environment = build_environment(choice) if isinstance(choice, str) else choice

    def step(state, key):
        seen = environment.observe(key, state)
        rewards = environment.rewards(key, state, seen.context)
        era = -1 if environment.era is None else environment.era(state)
        row = {**seen._asdict(), **rewards._asdict(), "era": era}
        return environment.advance(state, jnp.int32(arm)), row

    @jax.jit
    def go(key):
        return jax.lax.scan(step, environment.init(key), jax.random.split(key, steps))[1]

    return jax.tree.map(np.asarray, go(jax.random.key(seed)))


def means_after(environment: Environment, state: object, context: object = ()) -> np.ndarray:
    context = jnp.asarray(context, jnp.float32)
    return np.asarray(environment.rewards(KEY, state, context).mean)
