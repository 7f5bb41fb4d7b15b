"""A feed-forward network that learns from memory what each arm pays at a context.

The loss is the squared error of the pulled arm's output, on minibatches drawn from memory with
replacement. RMSprop, its clipping and the initial weights are those of Riquelme et al. (2018).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits.core import Key
from driftbandits.numerics.networks import Affine, affine, init_affine

Network = tuple[Affine, ...]

BOUND = 0.3  # of the initial weights
OPTIMIZER = optax.chain(
    optax.clip_by_global_norm(5.0),
    optax.scale_by_rms(decay=0.9, eps=1e-10, initial_scale=1.0),
)


class Memory(NamedTuple):
    """Inputs, arms and rewards seen so far, in a ring buffer."""

    inputs: Array  # (size, inputs) float32
    arms: Array  # (size,) int32
    rewards: Array  # (size,) float32
    seen: Array  # () int32, rewards seen, including overwritten ones


class Fit(NamedTuple):
    """The network and the state of its training."""

    network: Network
    optimizer: optax.OptState
    steps: Array  # () int32


def empty_memory(size: int, inputs: int) -> Memory:
    return Memory(
        jnp.zeros((size, inputs)), jnp.zeros(size, jnp.int32), jnp.zeros(size), jnp.int32(0)
    )


def store(memory: Memory, inputs: Array, arm: Array, reward: Array) -> Memory:
    slot = memory.seen % memory.arms.size
    return Memory(
        memory.inputs.at[slot].set(inputs),
        memory.arms.at[slot].set(arm),
        memory.rewards.at[slot].set(reward),
        memory.seen + 1,
    )


def without_new_arms(memory: Memory, is_new: Array) -> Memory:
    """The memory in which past rewards of arms whose place has a new arm are nobody's."""
    nobody = is_new.size
    left = is_new[jnp.minimum(memory.arms, nobody - 1)]
    return memory._replace(arms=jnp.where(left, nobody, memory.arms))


def init_fit(key: Key, widths: list[int]) -> Fit:
    """A network with layers of these widths, from the inputs to the arms."""
    keys = jax.random.split(key, len(widths) - 1)
    network = tuple(
        init_affine(k, width, after, BOUND)._replace(bias=jnp.zeros(after))
        for k, width, after in zip(keys, widths[:-1], widths[1:], strict=True)
    )
    return Fit(network, OPTIMIZER.init(network), jnp.int32(0))


def features(network: Network, inputs: Array) -> Array:
    """The last hidden layer; of several inputs, if they are the columns of a matrix."""
    signal = inputs
    for layer in network[:-1]:
        signal = jax.nn.relu(affine(layer, signal))
    return signal


def train(
    fit: Fit, memory: Memory, key: Key, *, steps: int, batch: int, rate: Callable[[Array], Array]
) -> Fit:
    """Some minibatch steps; `rate` maps the number of steps so far to the learning rate."""
    kept = jnp.minimum(memory.seen, memory.arms.size)

    def loss(network: Network, rows: Array) -> Array:
        # One column per reward: XLA is slow at the gradients with one row per reward.
        outputs = affine(network[-1], features(network, memory.inputs[rows].T))
        pulled = memory.arms[rows] == jnp.arange(outputs.shape[0])[:, None]
        chosen = jnp.sum(outputs, axis=0, where=pulled)
        return jnp.mean((chosen - memory.rewards[rows]) ** 2)

    def descend(i: Array, fit: Fit) -> Fit:
        # A level has 23 bits: of 10,000 rows none is drawn more than 0.2% too rarely.
        level = jax.random.uniform(jax.random.fold_in(key, i), (batch,))
        rows = jnp.minimum((level * kept).astype(jnp.int32), kept - 1)
        gradient = jax.grad(loss)(fit.network, rows)
        direction, optimizer = OPTIMIZER.update(gradient, fit.optimizer)
        step = rate(fit.steps)
        network = jax.tree.map(lambda w, d: w - step * d, fit.network, direction)
        return Fit(network, optimizer, fit.steps + 1)

    return jax.lax.fori_loop(0, steps, descend, fit)
