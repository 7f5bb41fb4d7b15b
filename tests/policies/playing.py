"""What the parity tests share: a policy played step by step, and rewards to play it on."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandits import BanditSpec, build_policy

STEPS = 1500
HORIZON = 2000
NOISE = 0.5
KEY = jax.random.key(7)

Array = np.ndarray
Generator = np.random.Generator
Problem = Callable[[Generator], Array]


class Step(NamedTuple):
    t: int
    key: Any
    state: Any  # before the decision, with all earlier rewards learned
    decision: Any
    arm: int
    reward: np.float32


@cache
def compiled(name: str, spec: BanditSpec) -> tuple[Callable, Callable, Callable]:
    policy = build_policy(name, spec)
    return policy.init, jax.jit(policy.act), jax.jit(policy.learn)


key_of = jax.jit(lambda t: jax.random.fold_in(KEY, t))


def play(
    name: str, spec: BanditSpec, rewards: Array, masks: Array, contexts: Array | None = None
) -> Iterator[Step]:
    """The steps of a policy where arm k would pay rewards[t, k] in step t."""
    init, act, learn = compiled(name, spec)
    contexts = np.zeros((STEPS, 0), np.float32) if contexts is None else contexts
    state = init(KEY)
    for t in range(STEPS):
        key = key_of(t)
        decision, after = act(key, state, contexts[t], masks[t])
        arm = int(decision.arm)
        yield Step(t, key, state, decision, arm, rewards[t, arm])
        state = learn(after, decision.ticket, rewards[t, arm])


def gaussian(rng: Generator, means: Array) -> Array:
    return (means + NOISE * rng.standard_normal((STEPS, means.shape[-1]))).astype(np.float32)


def close_arms(rng: Generator) -> Array:
    """So close that the filters tell them apart only by long windows, if at all."""
    return gaussian(rng, np.linspace(0.5, 0.55, 5))


def rotting_arms(rng: Generator) -> Array:
    """The second arm is the better one until it falls."""
    means = np.tile([0.5, 1.0], (STEPS, 1))
    means[STEPS // 4 :, 1] = 0.4
    return gaussian(rng, means)


def coins(rng: Generator) -> Array:
    return (rng.random((STEPS, 5)) < np.linspace(0.3, 0.7, 5)).astype(np.float32)


def wheel(rng: Generator, num_arms: int) -> tuple[Array, Array]:
    """Contexts on the unit disc, and rewards: 50 far out, for the arm of that direction."""
    angle, radius = rng.uniform(0, 2 * np.pi, STEPS), np.sqrt(rng.random(STEPS))
    contexts = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    means = np.tile([1.2] + [1.0] * (num_arms - 1), (STEPS, 1))
    directed = 1 + (angle / (np.pi / 2)).astype(int) % (num_arms - 1)
    means[np.arange(STEPS), directed] = np.where(radius > 0.5, 50.0, 1.0)
    rewards = means + 0.01 * rng.standard_normal(means.shape)
    return contexts.astype(np.float32), rewards.astype(np.float32)


def masks_for(rng: Generator, num_arms: int, masked: bool) -> Array:
    masks = rng.random((STEPS, num_arms)) < (0.6 if masked else 1.0)
    masks[np.arange(STEPS), rng.integers(num_arms, size=STEPS)] = True
    return masks
