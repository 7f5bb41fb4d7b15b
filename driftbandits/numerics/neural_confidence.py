"""How certain a network is of every arm's reward, from the gradient of its output.

    f_k = the network's output for arm k;  g_k = gradient of f_k in all weights
    sigma_k^2 = precision * variance * sum g_k^2 / U;  U = precision + sum of g^2 over the pulls

U is the diagonal of the neural tangent kernel's information matrix. The networks are those of
`arm_networks`; the rewards are scaled to [0, 1].
"""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Key, Observation
from driftbandits.numerics.arm_networks import Network, context_network, feature_network
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.regression import Memory, empty_memory, store, without_new_arms

LEAST_SPREAD = 1e-12  # where no unit fires; sampling breaks the tie


class ConfidenceState(NamedTuple):
    weights: Any
    optimizer: optax.OptState
    information: Any  # U, of each weight
    memory: Memory


class ConfidenceTicket(NamedTuple):
    inputs: Array  # (inputs,) float32, of the pulled arm
    arm: Array  # () int32
    key: Key  # of the minibatches


class Prediction(NamedTuple):
    """Of every arm's reward at one observation."""

    mean: Array  # (num_arms,) float32
    deviation: Array  # (num_arms,) float32
    squares: Any  # g^2 of each weight, (num_arms, ...)
    inputs: Array  # (inputs,) float32, or with features of arms (num_arms, inputs)


class Learner(NamedTuple):
    init: Callable[[Key], ConfidenceState]
    predict: Callable[[ConfidenceState, Observation], Prediction]
    pull: Callable[
        [ConfidenceState, Prediction, Array, Key], tuple[ConfidenceTicket, ConfidenceState]
    ]
    learn: Callable[[ConfidenceState, ConfidenceTicket, Array], ConfidenceState]
    forget: Callable[[ConfidenceState, ConfidenceState, Array], ConfidenceState]


def confidence_learner(
    spec: BanditSpec,
    *,
    hidden: int,
    precision: float,
    variance: float,
    memory: int,
    train_every: int,
    train_steps: int,
    batch: int,
    learning_rate: float,
    deviation: float | None,
) -> Learner:
    """What the policies with such a network share; they document the settings."""
    check.integer(hidden=hidden, memory=memory, train_every=train_every, batch=batch)
    check.integer(at_least=0, train_steps=train_steps)
    check.positive(precision=precision, learning_rate=learning_rate)
    check.not_negative(variance=variance)
    low, high = spec.reward_range
    network = network_of(spec, hidden, deviation)
    optimizer = optax.adam(learning_rate)

    def init(key: Key) -> ConfidenceState:
        weights = network.init(key)
        return ConfidenceState(
            weights,
            optimizer.init(weights),
            jax.tree.map(lambda w: jnp.full_like(w, precision), weights),
            empty_memory(memory, network.size),
        )

    def predict(state: ConfidenceState, observation: Observation) -> Prediction:
        inputs = network.inputs(observation)
        mean, squares = network.outputs_and_squares(state.weights, inputs)
        ratios = jax.tree.leaves(jax.tree.map(jnp.divide, squares, state.information))
        spread = reduce(add, [jnp.sum(ratio, axis=range(1, ratio.ndim)) for ratio in ratios])
        spread = jnp.maximum(precision * variance * spread, LEAST_SPREAD)
        return Prediction(mean, jnp.sqrt(spread), squares, inputs)

    def pull(
        state: ConfidenceState, prediction: Prediction, arm: Array, key: Key
    ) -> tuple[ConfidenceTicket, ConfidenceState]:
        information = count_gradient(state.information, prediction.squares, arm)
        ticket = ConfidenceTicket(of_arm(prediction.inputs, arm), arm, key)
        return ticket, state._replace(information=information)

    def learn(state: ConfidenceState, ticket: ConfidenceTicket, reward: Array) -> ConfidenceState:
        scaled = (reward - low) / (high - low)
        state = state._replace(memory=store(state.memory, ticket.inputs, ticket.arm, scaled))
        due = state.memory.seen % train_every == 0
        return occasionally(due, lambda state: trained(state, ticket.key), state)

    def trained(state: ConfidenceState, key: Key) -> ConfidenceState:
        weights, moments = train(state.weights, state.optimizer, state.memory, key)
        return state._replace(weights=weights, optimizer=moments)

    # One run after another, so that the layers stay in cache.
    @jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
    def train(
        weights: Any, moments: optax.OptState, memory: Memory, key: Key
    ) -> tuple[Any, optax.OptState]:
        kept = jnp.minimum(memory.seen, memory.arms.size)

        def descend(i: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            weights, moments = carry
            level = jax.random.uniform(jax.random.fold_in(key, i), (batch,))
            rows = jnp.minimum((level * kept).astype(jnp.int32), kept - 1)
            gradient = jax.grad(loss)(weights, network, memory, rows, precision / kept)
            updates, moments = optimizer.update(gradient, moments)
            return optax.apply_updates(weights, updates), moments

        return jax.lax.fori_loop(0, train_steps, descend, (weights, moments))

    def forget(old: ConfidenceState, new: ConfidenceState, is_new: Array) -> ConfidenceState:
        return new._replace(memory=without_new_arms(new.memory, is_new))

    return Learner(init, predict, pull, learn, forget)


def network_of(spec: BanditSpec, hidden: int, deviation: float | None) -> Network:
    """The network that suits the problem; without a deviation, features are ignored."""
    if deviation is not None:
        check.not_negative(deviation=deviation)
    if spec.arm_dim == 0 or deviation is None:
        return context_network(spec, hidden)
    return feature_network(spec, hidden, deviation)


def of_arm(inputs: Array, arm: Array) -> Array:
    """The input of one arm, picked by a mask, which vectorises over runs."""
    if inputs.ndim == 1:
        return inputs
    return jnp.sum(inputs, axis=0, where=(jnp.arange(len(inputs)) == arm)[:, None])


def count_gradient(information: Any, squares: Any, arm: Array) -> Any:
    """U after one more pull."""

    def counted(before: Array, square: Array) -> Array:
        pulled = jnp.arange(len(square)) == arm
        pulled = pulled.reshape(-1, *[1] * (square.ndim - 1))
        if before.ndim == square.ndim:  # weights of the arms' own
            return before + jnp.where(pulled, square, 0.0)
        return before + jnp.sum(square, axis=0, where=pulled)

    return jax.tree.map(counted, information, squares)


def loss(weights: Any, network: Network, memory: Memory, rows: Array, decay: Array) -> Array:
    """Mean squared error of the pulled arms' outputs, and the decay of all weights."""
    outputs = network.outputs(weights, memory.inputs[rows], memory.arms[rows])
    error = jnp.mean((outputs - memory.rewards[rows]) ** 2)
    return error + decay / 2 * reduce(add, [jnp.sum(w**2) for w in jax.tree.leaves(weights)])
