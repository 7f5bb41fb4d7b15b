"""Recurrent neural-linear: Thompson sampling with linear models of what a GRU has seen.

    h_t = GRU((context, last arm, last reward), h_{t-1});  z = (h_t, context, 1)
    beta_k ~ N(mu_k, S_k);  arm = argmax z' beta_k
    per reward: mu_k <- sqrt(g) mu_k,  S_k <- g S_k + (1 - g) prior_variance I  for all arms, then
    S^-1 <- S^-1 + z z' / variance,  mu <- mu + S z (r - z' mu) / variance  for the pulled arm

Each reward also brings one RMSprop step of the GRU and a linear output per arm on
(output_arm - r)^2, with the gradient through the last `window` steps. We sample the scores
z' beta_k instead of the beta_k. The last arm and reward are those learned last, so rewards may be
late. Rewards are scaled by the reward range. Without a context the GRU's input is the constant 1.

Paper: Ramesh, Rauber, Conserva & Schmidhuber (2022; first 2020), "Recurrent neural-linear posterior
sampling for nonstationary contextual bandits".

Differences from the paper: the candidate arm is not an input; every arm has its own linear model.
The network takes one step per reward, where the paper trains on the whole history every 32 steps
and then rebuilds the posterior; so the cost of a step is bounded. Old features become outdated as
the network changes, and rewards may drift in ways that the features do not show: hence g, the
`discount`. It models weights that drift as an autoregression whose stationary distribution is the
prior. That makes the update above exact, keeps S_k below the prior's, and needs no matrix inverse.
The context itself is a feature beside the GRU's. One GRU layer replaces the LSTM between two other
layers, and there is no weight decay.

Use it when rewards depend on the context and drift, or when recent rewards predict the next ones.
Not when patterns must be learned from few rewards: it takes one gradient step per reward.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import context_or_one
from driftbandits.numerics.linear import LinearPosterior, predict, prior, update
from driftbandits.numerics.networks import Affine, Gru, affine, gru, init_affine, init_gru
from driftbandits.numerics.rmsprop import rmsprop
from driftbandits.numerics.scores import best_score

MISFIT = 0.001  # variance of scaled rewards beyond their noise, since no linear model is exact


class Network(NamedTuple):
    layer: Gru
    output: Affine  # the reward of every arm


class RecurrentLinearState(NamedTuple):
    network: Network
    optimizer: optax.OptState
    posterior: LinearPosterior
    inputs: Array  # (window, inputs) float32, of the last decisions
    hidden: Array  # (window, hidden) float32, of the last moments; the newest is the present one
    filled: Array  # () int32, how many rows of the inputs are filled
    last: Array  # (num_arms + 1,) float32, the arm and the scaled reward learned last


class RecurrentLinearTicket(NamedTuple):
    inputs: Array  # (window, inputs) float32, the last ones those of the decision
    hidden: Array  # (hidden,) float32, before the first of them
    filled: Array  # () int32, how many of them are filled
    arm: Array  # () int32


def recurrent_linear(
    spec: BanditSpec,
    *,
    hidden: int = 32,
    window: int = 16,
    learning_rate: float = 0.003,
    discount: float = 0.999,
    prior_variance: float = 0.03,
    variance: float | None = None,
) -> Policy:
    """Bayesian linear regression, which forgets, on a GRU's view of the history.

    Args:
        hidden: Units of the GRU.
        window: Number of steps that the gradient goes back.
        learning_rate: Step size of RMSprop.
        discount: g, the share of the posterior that stays from one reward to the next; 1 never
            forgets.
        prior_variance: Variance of each weight of the linear models, for rewards scaled to [0, 1].
        variance: Variance of scaled rewards around the linear models; by default that of
            `spec.noise` plus 0.001.
    """
    low, high = spec.reward_range
    if variance is None:
        variance = (spec.noise / (high - low)) ** 2 + MISFIT
    check.integer(hidden=hidden, window=window)
    check.positive(learning_rate=learning_rate, prior_variance=prior_variance, variance=variance)
    check.probability(discount=discount)
    num_arms, precision = spec.num_arms, variance / prior_variance
    inputs = max(spec.context_dim, 1) + num_arms + 1
    optimizer = rmsprop(learning_rate)

    def init(key: Key) -> RecurrentLinearState:
        network = init_network(key, inputs, hidden, num_arms)
        return RecurrentLinearState(
            network=network,
            optimizer=optimizer.init(network),
            posterior=prior(num_arms, hidden + spec.context_dim + 1, precision),
            inputs=jnp.zeros((window, inputs)),
            hidden=jnp.zeros((window, hidden)),
            filled=jnp.int32(0),
            last=jnp.zeros(num_arms + 1),
        )

    def act(
        key: Key, state: RecurrentLinearState, observation: Observation
    ) -> tuple[Decision, RecurrentLinearState]:
        now = jnp.concatenate([context_or_one(observation.context), state.last])
        seen = jnp.concatenate([state.inputs[1:], now[None]])
        filled = jnp.minimum(state.filled + 1, window)
        h = gru(state.network.layer, now, state.hidden[-1])
        mean, spread = predict(state.posterior, features(h, observation.context))
        deviation = jnp.sqrt(variance * spread)
        arm, probabilities = best_score(key, mean, deviation, observation.available)
        ticket = RecurrentLinearTicket(seen, state.hidden[0], filled, arm)
        moved = jnp.concatenate([state.hidden[1:], h[None]])
        state = state._replace(inputs=seen, hidden=moved, filled=filled)
        return Decision(arm, probabilities, ticket), state

    def learn(
        state: RecurrentLinearState, ticket: RecurrentLinearTicket, reward: Array
    ) -> RecurrentLinearState:
        scaled = (reward - low) / (high - low)

        def loss(network: Network) -> tuple[Array, Array]:
            h = unroll(network.layer, ticket.inputs, ticket.hidden, ticket.filled)
            return (affine(network.output, h)[ticket.arm] - scaled) ** 2, h

        gradient, h = jax.grad(loss, has_aux=True)(state.network)
        updates, moments = optimizer.update(gradient, state.optimizer)
        z = features(h, ticket.inputs[-1, : spec.context_dim])
        posterior = forget(state.posterior, discount, precision)
        return state._replace(
            network=optax.apply_updates(state.network, updates),
            optimizer=moments,
            posterior=update(posterior, ticket.arm, z, scaled)[0],
            last=jnp.append(jax.nn.one_hot(ticket.arm, num_arms), scaled),
        )

    return Policy(init, act, learn)


def init_network(key: Key, inputs: int, hidden: int, num_arms: int) -> Network:
    """PyTorch's initial weights."""
    layer_key, output_key = jax.random.split(key)
    output = init_affine(output_key, hidden, num_arms, bound=hidden**-0.5)
    return Network(init_gru(layer_key, inputs, hidden), output)


def features(hidden: Array, context: Array) -> Array:
    return jnp.concatenate([hidden, context, jnp.ones(1)])


def unroll(layer: Gru, inputs: Array, hidden: Array, filled: Array) -> Array:
    """The hidden state after the last `filled` of the inputs."""

    def follow(hidden: Array, step: tuple[Array, Array]) -> tuple[Array, None]:
        real, x = step
        return jnp.where(real, gru(layer, x, hidden), hidden), None

    window = inputs.shape[0]
    return jax.lax.scan(follow, hidden, (jnp.arange(window) >= window - filled, inputs))[0]


def forget(posterior: LinearPosterior, discount: float, precision: float) -> LinearPosterior:
    """A step of the drift. The covariance is in units of the rewards' variance."""
    fresh = (1 - discount) / precision * jnp.eye(posterior.mean.shape[1])
    return LinearPosterior(discount**0.5 * posterior.mean, discount * posterior.covariance + fresh)
