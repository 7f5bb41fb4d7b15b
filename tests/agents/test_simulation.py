"""An agent that meets the worlds of a simulation decides as the simulated policy does."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import build_environment, simulate
from driftbandits.agents.agent import Agent
from driftbandits.core import Environment
from driftbandits.simulation.engine import block_keys

HORIZON = 500
SEED = 5

CASES = [
    ("thompson", "sinusoidal(num_arms=4)"),
    ("tracker", "flipping(num_arms=3)"),
    ("tracker", "flipping_linear(num_arms=3, context_dim=2, every=200)"),
    ("recurrent(hidden=16)", "sinusoidal(num_arms=4, max_consecutive=5)"),
    ("lin_ts", "flipping_linear(num_arms=4, context_dim=3, every=200)"),
]


def agent_for(policy: str, environment: Environment) -> Agent:
    spec = environment.spec
    arms = [f"arm {i}" for i in range(spec.num_arms)]
    context = [f"x{i}" for i in range(spec.context_dim)]
    known = {"reward_range": spec.reward_range, "horizon": HORIZON}
    return Agent(arms, context, policy, SEED, **known, out_of_range="accept")


def world_of(environment: Environment) -> tuple[Any, Callable[..., Any], Callable[..., Any]]:
    """Run 0 of a simulation: where it starts, what it shows and pays at a time, how it goes on."""
    keys = block_keys(SEED, 1, 0)
    observing, paying, _ = keys.steps[0]

    @jax.jit
    def look(world: Any, time: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        seen = environment.observe(jax.random.fold_in(observing, time), world)
        rewards = environment.rewards(jax.random.fold_in(paying, time), world, seen.context)
        return seen.context, seen.available, rewards.sampled

    return environment.init(keys.world_start[0]), look, jax.jit(environment.advance)


def pulled(policy: str, environment: Environment) -> list[int]:
    """The arms that the agent chooses."""
    agent = agent_for(policy, environment)
    world, look, advance = world_of(environment)
    arms = []
    for time in range(HORIZON):
        context, available, sampled = look(world, jnp.int32(time))
        names = [name for name, free in zip(agent.arms, available, strict=True) if free]
        decision = agent.decide(np.asarray(context), names, now=time)
        arm = agent.arms.index(decision.arm)
        agent.reward(decision.id, float(sampled[arm]), now=time)
        world = advance(world, jnp.int32(arm))
        arms.append(arm)
    return arms


@pytest.mark.parametrize(("policy", "world"), CASES)
def test_an_agent_pulls_what_the_simulation_pulls(policy: str, world: str) -> None:
    environment = build_environment(world)
    trace = simulate(policy, environment, horizon=HORIZON, seed=SEED, record_every=1)
    steps = np.diff(trace.pulls[0], axis=0, prepend=0)
    assert len(set(steps.argmax(axis=1))) == environment.spec.num_arms, "every arm has its turn"
    np.testing.assert_array_equal(pulled(policy, environment), steps.argmax(axis=1))
