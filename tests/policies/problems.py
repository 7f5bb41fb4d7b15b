"""Problems and compiled policies that the contract tests share."""

import inspect
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandits import POLICIES, BanditSpec, Decision, Observation, Policy
from driftbandits.catalogue import IGNORES

FREE = BanditSpec(num_arms=4, horizon=300)
CONTEXTUAL = BanditSpec(num_arms=4, context_dim=3, horizon=300)
SPECS = {"free": FREE, "contextual": CONTEXTUAL}


def looks_at_context(name: str) -> bool:
    """By its text, which test_contract.py checks."""
    text = inspect.getmodule(POLICIES[name]).__doc__ or ""
    return not text.rstrip().endswith(f"\n{IGNORES}")


# A policy that ignores the context meets one all the same in the test of just that.
CASES = [
    (name, problem)
    for name in POLICIES
    for problem in SPECS
    if problem == "free" or looks_at_context(name)
]


class Compiled(NamedTuple):
    spec: BanditSpec
    policy: Policy
    init: object
    act: object
    learn: object


@cache
def compiled(name: str, problem: str) -> Compiled:
    spec = SPECS[problem]
    policy = POLICIES[name](spec)
    return Compiled(spec, policy, *(jax.jit(f) for f in policy[:3]))


def seen_by(policy: Policy, spec: BanditSpec, generator: np.random.Generator) -> np.ndarray:
    """A random context; the means for a policy that sees them."""
    size = spec.num_arms if policy.sees_means else spec.context_dim
    return generator.normal(size=size).astype(np.float32)


def random_mask(generator: np.random.Generator, num_arms: int) -> np.ndarray:
    mask = generator.random(num_arms) < 0.5
    mask[generator.integers(num_arms)] = True
    return mask


@cache
def experienced(name: str, problem: str, steps: int = 50) -> tuple[object, list[Decision]]:
    """A state after some pulls with random masks and binary rewards, and the decisions made."""
    case = compiled(name, problem)
    generator = np.random.default_rng(1)
    state = case.init(jax.random.key(0))
    decisions = []
    for step in range(steps):
        mask = random_mask(generator, case.spec.num_arms)
        context = seen_by(case.policy, case.spec, generator)
        decision, state = case.act(jax.random.key(step), state, Observation(context, mask))
        assert mask[int(decision.arm)], f"{name} pulled an arm that is not available"
        state = case.learn(state, decision.ticket, np.float32(generator.random() < 0.5))
        decisions.append(decision)
    return state, decisions


DRAWS, COPIES = 4000, 3


class Vmapped(NamedTuple):
    """Many decisions from one state, and rewards learned in several states, each in one program."""

    act: jax.stages.Lowered  # arms and probabilities of all; the first decisions and their states
    learn: jax.stages.Lowered


@cache
def vmapped(name: str, problem: str) -> Vmapped:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)

    def act(keys: jax.Array, state: object, observation: Observation) -> object:
        made = jax.vmap(case.policy.act, (0, None, None))(keys, state, observation)
        first = jax.tree.map(lambda leaf: leaf[:COPIES], made)
        return made[0].arm, made[0].probabilities, first

    keys = jax.random.split(jax.random.key(7), DRAWS)
    context = seen_by(case.policy, case.spec, np.random.default_rng(5))
    observation = Observation(context, np.ones(case.spec.num_arms, bool))
    acted = jax.jit(act).lower(keys, state, observation)
    decision, after = acted.out_info[2]
    learn = jax.jit(jax.vmap(case.policy.learn, (0, 0, None)))
    return Vmapped(acted, learn.lower(after, decision.ticket, np.float32(0)))


@cache
def compiled_vmapped(name: str, problem: str) -> tuple[jax.stages.Compiled, jax.stages.Compiled]:
    lowered = vmapped(name, problem)
    return lowered.act.compile(), lowered.learn.compile()


def assert_same_tree(first: object, second: object, exactly: bool = True) -> None:
    """Same structure, shapes, dtypes and values."""
    first_leaves, first_tree = jax.tree.flatten(first)
    second_leaves, second_tree = jax.tree.flatten(second)
    assert first_tree == second_tree
    for a, b in zip(first_leaves, second_leaves, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if exactly:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
