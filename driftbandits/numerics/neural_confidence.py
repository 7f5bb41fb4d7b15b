"""How certain a network is of every arm's reward, from the gradient of its output.

    f_k(x) = sum_j v_j max(0, w_kj' x);  g_k = gradient of f_k in all weights
    sigma_k^2 = precision * variance * sum g_k^2 / U;  U = precision + sum of g^2 over the pulls

U is the diagonal of the neural tangent kernel's information matrix. An arm has first-layer weights
w_k of its own, which is the same as one first layer whose input holds x in the arm's block and
zeros elsewhere. x is the context and a constant; the rewards are scaled to [0, 1].
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Key
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.regression import Memory, empty_memory, store, without_new_arms

LEAST_SPREAD = 1e-12  # where no unit fires; sampling breaks the tie


class Weights(NamedTuple):
    first: Array  # (num_arms, hidden, inputs) float32, w_kj
    last: Array  # (hidden,) float32, v_j


class ConfidenceState(NamedTuple):
    weights: Weights
    optimizer: optax.OptState
    information: Weights  # U, of each weight
    memory: Memory


class ConfidenceTicket(NamedTuple):
    inputs: Array  # (context_dim + 1,) float32
    arm: Array  # () int32
    key: Key  # of the minibatches


class Prediction(NamedTuple):
    """Of every arm's reward at one context."""

    mean: Array  # (num_arms,) float32
    deviation: Array  # (num_arms,) float32
    squares: Weights  # g^2, (num_arms, hidden, inputs) and (num_arms, hidden)


class Learner(NamedTuple):
    init: Callable[[Key], ConfidenceState]
    predict: Callable[[ConfidenceState, Array], Prediction]
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
) -> Learner:
    """What the policies with such a network share; they document the settings."""
    check.integer(hidden=hidden, memory=memory, train_every=train_every, batch=batch)
    check.integer(at_least=0, train_steps=train_steps)
    check.positive(precision=precision, learning_rate=learning_rate)
    check.not_negative(variance=variance)
    low, high = spec.reward_range
    optimizer = optax.adam(learning_rate)

    def init(key: Key) -> ConfidenceState:
        weights = init_weights(key, spec.num_arms, hidden, spec.context_dim + 1)
        return ConfidenceState(
            weights,
            optimizer.init(weights),
            jax.tree.map(lambda w: jnp.full_like(w, precision), weights),
            empty_memory(memory, spec.context_dim + 1),
        )

    def predict(state: ConfidenceState, inputs: Array) -> Prediction:
        mean, squares = outputs_and_squares(state.weights, inputs)
        ratios = jax.tree.map(jnp.divide, squares, state.information)
        spread = jnp.sum(ratios.first, axis=(1, 2)) + jnp.sum(ratios.last, axis=1)
        spread = jnp.maximum(precision * variance * spread, LEAST_SPREAD)
        return Prediction(mean, jnp.sqrt(spread), squares)

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
        weights: Weights, moments: optax.OptState, memory: Memory, key: Key
    ) -> tuple[Weights, optax.OptState]:
        kept = jnp.minimum(memory.seen, memory.arms.size)

        def descend(i: Array, carry: tuple[Weights, Any]) -> tuple[Weights, Any]:
            weights, moments = carry
            level = jax.random.uniform(jax.random.fold_in(key, i), (batch,))
            rows = jnp.minimum((level * kept).astype(jnp.int32), kept - 1)
            gradient = jax.grad(loss)(weights, memory, rows, precision / kept)
            updates, moments = optimizer.update(gradient, moments)
            return optax.apply_updates(weights, updates), moments

        return jax.lax.fori_loop(0, train_steps, descend, (weights, moments))

    def forget(old: ConfidenceState, new: ConfidenceState, is_new: Array) -> ConfidenceState:
        return new._replace(memory=without_new_arms(new.memory, is_new))

    return Learner(init, predict, learn, forget)


def init_weights(key: Key, num_arms: int, hidden: int, inputs: int) -> Weights:
    """PyTorch's initial weights; an arm's block counts its own inputs, as the others are zero."""
    first_key, last_key = jax.random.split(key)
    bound, last_bound = inputs**-0.5, hidden**-0.5
    return Weights(
        jax.random.uniform(first_key, (num_arms, hidden, inputs), minval=-bound, maxval=bound),
        jax.random.uniform(last_key, (hidden,), minval=-last_bound, maxval=last_bound),
    )


def outputs_and_squares(weights: Weights, inputs: Array) -> tuple[Array, Weights]:
    """The output of every arm, and its gradient squared."""
    units = jax.nn.relu(weights.first @ inputs)
    slopes = jnp.where(units > 0, weights.last, 0.0)
    squares = Weights(slopes[..., None] ** 2 * inputs**2, units**2)
    return units @ weights.last, squares


def count_gradient(information: Weights, squares: Weights, arm: Array) -> Weights:
    """U after one more pull."""
    pulled = jnp.arange(squares.last.shape[0]) == arm
    return Weights(
        information.first + jnp.where(pulled[:, None, None], squares.first, 0.0),
        information.last + jnp.sum(squares.last, axis=0, where=pulled[:, None]),
    )


def loss(weights: Weights, memory: Memory, rows: Array, decay: Array) -> Array:
    """Mean squared error of the pulled arms' outputs, and the decay of all weights."""
    num_arms, hidden, inputs = weights.first.shape
    own = memory.arms[rows, None] == jnp.arange(num_arms)
    blocks = own[:, :, None] * memory.inputs[rows][:, None, :]
    first = weights.first.transpose(0, 2, 1).reshape(num_arms * inputs, hidden)
    units = jax.nn.relu(blocks.reshape(rows.size, -1) @ first)
    error = jnp.mean((units @ weights.last - memory.rewards[rows]) ** 2)
    return error + decay / 2 * (jnp.sum(weights.first**2) + jnp.sum(weights.last**2))
