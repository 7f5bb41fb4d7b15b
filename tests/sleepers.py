"""A world in which the arms take turns sleeping."""

from functools import cache

import jax.numpy as jnp

from driftbandits import Environment, build_environment


@cache
def sleeping() -> Environment:
    """Four coins, of which arm t mod 4 is asleep at time t."""
    awake = build_environment("bernoulli(num_arms=4)")

    def init(key):
        return awake.init(key), jnp.int32(0)

    def observe(key, state):
        return awake.observe(key, state[0])._replace(available=jnp.arange(4) != state[1] % 4)

    def rewards(key, state, context):
        return awake.rewards(key, state[0], context)

    def advance(state, arm):
        return awake.advance(state[0], arm), state[1] + 1

    return Environment(awake.spec, init, observe, rewards, advance)
