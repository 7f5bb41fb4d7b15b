"""The tracker with a memory: its second bank on the hidden state of a GRU that learns online.

    h = GRU((context or 1, last arm, last reward), h);   features of the second bank: (h, z)
    per reward one RMSprop step on (output of the pulled arm - reward)^2, through `window` steps

Rewards are scaled by their mean and deviation so far, and come at once. Everything else is the
tracker's: filters, index, effect of streaks, gate.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits.choice import settings_of
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import context_or_one
from driftbandits.numerics.networks import affine, gru
from driftbandits.policies.recurrent_linear import (
    Network,
    RecurrentLinearTicket,
    init_network,
    unroll,
)
from driftbandits.policies.tracker import step
from driftbandits.policies.tracker.fourier import random_waves
from driftbandits.policies.tracker.policy import (
    FIRST_PULLS,
    FIRST_PULLS_WITH_CONTEXT,
    WAVE_DRIFTS,
    WAVE_LENGTH,
    constants_of_tracks,
    tracker,
)
from driftbandits.policies.tracker.seen_rewards import reward_variance
from driftbandits.policies.tracker.state import TrackerState, TrackerTicket, start_state
from driftbandits.policies.tracker.tracks import Learning

HIDDEN_DRIFTS = (*WAVE_DRIFTS, 1e-2)  # the features move as the network learns


class Memory(NamedTuple):
    """The GRU and what it has seen."""

    network: Network
    optimizer: optax.OptState
    inputs: Array  # (window, inputs) float32, of the last decisions
    hidden: Array  # (window, hidden) float32, of the last moments; the newest is the present one
    filled: Array  # () int32, how many rows of the inputs are filled
    last: Array  # (num_arms + 1,) float32, the arm and the scaled reward learned last


class RememberingState(NamedTuple):
    tracker: TrackerState  # without waves; its second track has the hidden state
    memory: Memory


class RememberingTicket(NamedTuple):
    tracker: TrackerTicket
    memory: RecurrentLinearTicket


def remembering_tracker(
    spec: BanditSpec, *, hidden: int = 16, window: int = 8, learning_rate: float = 0.003
) -> Policy:
    """The tracker, by its defaults, with a GRU in the place of the waves.

    Of the learning rates 0.001, 0.003 and 0.01 the second was best on `rhythm`, and better than the
    third on `echo` (8 runs of 10,000 steps with the seed 71000; the first was not tried on `echo`,
    nor other sizes on either).
    """
    num_arms, dim = spec.num_arms, spec.context_dim
    optimizer = optax.rmsprop(learning_rate, decay=0.99, eps=1e-8, eps_in_sqrt=False)
    usual = settings_of(tracker)
    constants = constants_of_tracks(
        (usual["drifts"], HIDDEN_DRIFTS),
        context_dim=dim,
        more_features=hidden,
        **{name: usual[name] for name in ("prior", "slope_prior", "slope_speed")},
        learning=Learning(**{name: usual[name] for name in Learning._fields}),
    )

    def init(key: Key) -> RememberingState:
        no_waves = random_waves(key, 0, dim, WAVE_LENGTH)
        return RememberingState(
            start_state(constants, no_waves, num_arms, dim),
            no_memory(key, max(dim, 1), num_arms, hidden, window, optimizer),
        )

    def act(
        key: Key, state: RememberingState, observation: Observation
    ) -> tuple[Decision, RememberingState]:
        known, scaled = step.see_context(state.tracker, observation.context)
        (linear,) = step.features_of(known, scaled)
        memory, seen = look(state.memory, context_or_one(scaled))
        decision, known = step.decide(
            key,
            known,
            constants,
            (linear, jnp.append(memory.hidden[-1], linear)),
            observation.available,
            first_pulls=FIRST_PULLS_WITH_CONTEXT if dim else FIRST_PULLS,
            effect_prior=usual["effect"],
            randomness=usual["randomness"],
        )
        own = RecurrentLinearTicket(seen, state.memory.hidden[0], memory.filled, decision.arm)
        ticket = RememberingTicket(decision.ticket, own)
        return decision._replace(ticket=ticket), RememberingState(known, memory)

    def learn(
        state: RememberingState, ticket: RememberingTicket, reward: Array
    ) -> RememberingState:
        known = step.learn(state.tracker, constants, ticket.tracker, reward)
        relative = reward - known.seen.first
        scaled = (relative - known.seen.mean) / jnp.sqrt(reward_variance(known.seen))
        return RememberingState(known, train(state.memory, ticket.memory, scaled, optimizer))

    return Policy(init, act, learn)


def no_memory(
    key: Key,
    dim: int,
    num_arms: int,
    hidden: int,
    window: int,
    optimizer: optax.GradientTransformation,
) -> Memory:
    """Before the first pull."""
    inputs = dim + num_arms + 1
    network = init_network(key, inputs, hidden, num_arms)
    return Memory(
        network=network,
        optimizer=optimizer.init(network),
        inputs=jnp.zeros((window, inputs)),
        hidden=jnp.zeros((window, hidden)),
        filled=jnp.int32(0),
        last=jnp.zeros(num_arms + 1),
    )


def look(memory: Memory, context: Array) -> tuple[Memory, Array]:
    """The hidden state moves on; with the inputs that led to it."""
    now = jnp.concatenate([context, memory.last])
    inputs = jnp.concatenate([memory.inputs[1:], now[None]])
    h = gru(memory.network.layer, now, memory.hidden[-1])
    moved = jnp.concatenate([memory.hidden[1:], h[None]])
    filled = jnp.minimum(memory.filled + 1, len(inputs))
    return memory._replace(inputs=inputs, hidden=moved, filled=filled), inputs


def train(
    memory: Memory,
    ticket: RecurrentLinearTicket,
    reward: Array,
    optimizer: optax.GradientTransformation,
) -> Memory:
    """One step of the network towards the pulled arm's scaled reward."""

    def loss(network: Network) -> Array:
        h = unroll(network.layer, ticket.inputs, ticket.hidden, ticket.filled)
        return (affine(network.output, h)[ticket.arm] - reward) ** 2

    updates, moments = optimizer.update(jax.grad(loss)(memory.network), memory.optimizer)
    pulled = jax.nn.one_hot(ticket.arm, memory.last.size - 1)
    return memory._replace(
        network=optax.apply_updates(memory.network, updates),
        optimizer=moments,
        last=jnp.append(pulled, reward),
    )
