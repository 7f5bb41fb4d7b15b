"""Recurrent Bandit: a stacked GRU trained online, one REINFORCE step per pull.

    h_t = GRU(c_t, h_{t-1});  z = W drop(h_t) + b;  p = softmax(z);  arm ~ p
    L = -(r - rbar) log p_arm + energy * (sum_i p_i z_i)^2;  one RMSprop step on L

A temperature divides the logits wherever they are used. Sums and softmax are over the available
arms. The paper's ablations are recurrent(energy=0), recurrent(energy=0, epsilon=0.01) and
recurrent(energy=0, temperature=2).

Paper: Rotman & Wolf (2023), "Energy regularized RNNs for solving non-stationary bandit problems".

Differences from the paper: none that we know of. Where it is silent, we chose: without a context
the input is the constant 1; the gradient goes through the present step only; rbar is the mean of
the rewards before this one; dropout follows each layer and is active when acting; RMSprop and the
initial weights are PyTorch's.

Use it when rewards change in ways that no window or discount fits, such as limits on pulls in a
row. Not when nothing drifts, nor when a step must be cheap.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import (
    context_or_one,
    draw,
    greedy_probabilities,
    softmax_probabilities,
    with_exploration,
)
from driftbandits.numerics.energy import energy_term
from driftbandits.numerics.networks import (
    Affine,
    Gru,
    affine,
    dropout_masks,
    gru,
    init_affine,
    init_gru,
)
from driftbandits.numerics.rmsprop import rmsprop


class Network(NamedTuple):
    layers: tuple[Gru, ...]
    output: Affine


class RecurrentState(NamedTuple):
    network: Network
    optimizer: optax.OptState
    hidden: Array  # (layers, hidden) float32
    baseline: Array  # () float32, mean of the rewards so far
    rewards: Array  # () int32, how many
    last: Array  # (num_arms + 1,) float32, the last arm and its reward; empty without history


class RecurrentTicket(NamedTuple):
    inputs: Array  # (inputs,) float32
    hidden: Array  # (layers, hidden) float32, before the decision
    kept: Array  # (layers, hidden) float32, what dropout multiplies the hidden units by
    arm: Array  # () int32
    available: Array  # (num_arms,) bool


def recurrent(
    spec: BanditSpec,
    *,
    layers: int = 2,
    hidden: int = 128,
    dropout: float = 0.1,
    energy: float = 0.1,
    learning_rate: float = 0.001,
    epsilon: float | None = None,
    temperature: float = 1.0,
    baseline_rate: float | None = None,
    history: bool = False,
) -> Policy:
    """The Recurrent Bandit: a GRU trained by REINFORCE with an energy term.

    Args:
        layers: Stacked GRU layers.
        hidden: Units of each layer.
        dropout: Share of units dropped after each layer.
        energy: Weight of the energy term; 0 turns it off.
        learning_rate: Step size of RMSprop.
        epsilon: Take the most probable arm, but a uniform one with this probability; by default it
            samples from the softmax.
        temperature: Divides the logits.
        baseline_rate: Rate of an exponential mean of the rewards as baseline; by default the mean
            of all rewards so far.
        history: Whether the last arm and its reward are inputs, too.
    """
    check.integer(layers=layers, hidden=hidden)
    check.not_negative(energy=energy)
    check.positive(learning_rate=learning_rate, temperature=temperature)
    check.flag(history=history)
    if not check.is_number(dropout) or not 0 <= dropout < 1:
        check.fail("dropout", "a share in [0, 1)", dropout)
    if epsilon is not None:
        check.probability(epsilon=epsilon)
    if baseline_rate is not None:
        check.probability(baseline_rate=baseline_rate)
    num_arms = spec.num_arms
    remembered = num_arms + 1 if history else 0
    optimizer = rmsprop(learning_rate)
    share_kept = 1 - dropout if dropout else None

    def init(key: Key) -> RecurrentState:
        network = init_network(key, max(spec.context_dim, 1) + remembered, hidden, layers, num_arms)
        return RecurrentState(
            network=network,
            optimizer=optimizer.init(network),
            hidden=jnp.zeros((layers, hidden)),
            baseline=jnp.zeros(()),
            rewards=jnp.zeros((), jnp.int32),
            last=jnp.zeros(remembered),
        )

    def act(
        key: Key, state: RecurrentState, observation: Observation
    ) -> tuple[Decision, RecurrentState]:
        dropout_key, arm_key = jax.random.split(key)
        inputs = jnp.concatenate([context_or_one(observation.context), state.last])
        kept = dropout_masks(dropout_key, share_kept, state.hidden.shape)
        logits, new_hidden = forward(state.network, inputs, state.hidden, kept)
        probabilities = softmax_probabilities(logits / temperature, observation.available)
        if epsilon is not None:
            greedy = greedy_probabilities(probabilities, observation.available)
            probabilities = with_exploration(greedy, epsilon, observation.available)
        arm = draw(arm_key, probabilities)
        ticket = RecurrentTicket(
            inputs=inputs, hidden=state.hidden, kept=kept, arm=arm, available=observation.available
        )
        return Decision(arm, probabilities, ticket), state._replace(hidden=new_hidden)

    def learn(state: RecurrentState, ticket: RecurrentTicket, reward: Array) -> RecurrentState:
        advantage = reward - state.baseline

        def loss(network: Network) -> Array:
            logits, _ = forward(network, ticket.inputs, ticket.hidden, ticket.kept)
            return reinforce_loss(
                logits / temperature, ticket.available, ticket.arm, advantage, energy
            )

        updates, optimizer_state = optimizer.update(jax.grad(loss)(state.network), state.optimizer)
        count = state.rewards + 1
        rate = 1 / count if baseline_rate is None else baseline_rate
        last = state.last
        if history:
            last = jnp.append(jax.nn.one_hot(ticket.arm, num_arms), reward)
        return RecurrentState(
            network=optax.apply_updates(state.network, updates),
            optimizer=optimizer_state,
            hidden=state.hidden,
            baseline=state.baseline + rate * advantage,
            rewards=count,
            last=last,
        )

    return Policy(init, act, learn)


def init_network(key: Key, inputs: int, hidden: int, layers: int, num_arms: int) -> Network:
    """PyTorch's initial weights for a stacked GRU and a linear layer."""
    *layer_keys, output_key = jax.random.split(key, layers + 1)
    widths = [inputs] + [hidden] * (layers - 1)
    stack = tuple(init_gru(k, width, hidden) for k, width in zip(layer_keys, widths, strict=True))
    return Network(stack, init_affine(output_key, hidden, num_arms, bound=hidden**-0.5))


def forward(network: Network, inputs: Array, hidden: Array, kept: Array) -> tuple[Array, Array]:
    """The logits, and the next hidden state of every layer."""
    signal, new_hidden = inputs, []
    for layer, h, mask in zip(network.layers, hidden, kept, strict=True):
        new_hidden.append(gru(layer, signal, h))
        signal = mask * new_hidden[-1]
    return affine(network.output, signal), jnp.stack(new_hidden)


def reinforce_loss(
    logits: Array, available: Array, arm: Array, advantage: Array, energy: float
) -> Array:
    """-(r - rbar) log p_arm + energy * L_EC."""
    loss = -advantage * jax.nn.log_softmax(jnp.where(available, logits, -jnp.inf))[arm]
    return loss + energy * energy_term(logits, available)
