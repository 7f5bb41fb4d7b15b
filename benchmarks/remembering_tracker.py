"""The tracker with a memory: its second bank on the hidden state of a GRU that learns online.

    h = GRU((context or 1, last arm, last reward), h);   features of the second bank: (h, z)
    per reward one RMSprop step on (output of the pulled arm - reward)^2, through `window` steps

Rewards are scaled by their mean and deviation so far, and come at once. Everything else is the
tracker's: filters, index, effect of the run length, gate.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits.choice import settings_of
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts import run_lengths, tracks
from driftbandits.parts.arms import context_or_one, count_pull, draw, greedy_law
from driftbandits.parts.fourier import random_waves
from driftbandits.parts.gate import Gate, closer, open_gate
from driftbandits.parts.networks import affine, gru
from driftbandits.parts.run_lengths import Runs
from driftbandits.parts.seen_rewards import SeenRewards, none_seen, see, spread
from driftbandits.parts.tracks import Track
from driftbandits.policies.recurrent_linear import (
    Network,
    RecurrentLinearTicket,
    init_network,
    unroll,
)
from driftbandits.policies.tracker import (
    FIRST_PULLS,
    FIRST_PULLS_WITH_CONTEXT,
    WAVE_DRIFTS,
    WAVE_PRIOR,
    TrackerTicket,
    advise,
    expected,
    features_of,
    follow,
    tracker,
    weigh_run,
)

HIDDEN_DRIFTS = (*WAVE_DRIFTS, 1e-2)  # the features move as the network learns


class Memory(NamedTuple):
    """The GRU and what it has seen."""

    network: Network
    optimizer: optax.OptState
    inputs: Array  # (window, inputs) float32, of the last decisions
    hidden: Array  # (window, hidden) float32, of the last moments; the newest is the present one
    made: Array  # () int32, decisions, counted up to window
    last: Array  # (num_arms + 1,) float32, the arm and the scaled reward learnt last


class RememberingState(NamedTuple):
    tracks: tuple[Track, ...]  # of the context, and of the hidden state beside it
    memory: Memory
    gate: Gate
    seen: SeenRewards
    runs: Runs
    pulls: Array  # (num_arms,) int32
    squares: Array  # (context_dim,) float32, sum over the contexts
    time: Array  # () int32, decisions


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
    least = FIRST_PULLS_WITH_CONTEXT if dim else FIRST_PULLS
    optimizer = optax.rmsprop(learning_rate, decay=0.99, eps=1e-8, eps_in_sqrt=False)
    usual = settings_of(tracker)
    doubt = usual["doubt"]
    learning = usual["share"], usual["memory"], doubt, usual["width"], usual["growth"]
    speeds = [usual["slope_speed"]] * dim + [1.0]
    priors = [usual["slope_prior"]] * dim + [usual["prior"]]
    about = [tracks.constants(usual["drifts"], speeds, priors, *learning)]
    speeds, priors = [1.0] * hidden + speeds, [WAVE_PRIOR] * hidden + priors
    about.append(tracks.constants(HIDDEN_DRIFTS, speeds, priors, *learning))

    def init(key: Key) -> RememberingState:
        return RememberingState(
            tuple(tracks.start(constants, num_arms) for constants in about),
            no_memory(key, max(dim, 1), num_arms, hidden, window, optimizer),
            open_gate(),
            none_seen(),
            run_lengths.no_runs(),
            jnp.zeros(num_arms, jnp.int32),
            jnp.zeros(dim),
            jnp.int32(0),
        )

    def act(
        key: Key, state: RememberingState, context: Array, available: Array
    ) -> tuple[Decision, RememberingState]:
        time, squares = state.time + 1, state.squares + context**2
        (linear,) = features_of(random_waves(key, 0, dim, 1.0), context, squares / time)
        memory, seen = look(state.memory, context_or_one(linear[:-1]))
        features = linear, jnp.append(memory.hidden[-1], linear)
        effect = run_lengths.effect_now(state.runs, usual["effect"])
        push = run_lengths.push(state.runs, effect, num_arms)
        advice = [
            advise(*tracks.index(*of), push, effect.chance, usual["randomness"], available)
            for of in zip(state.tracks, about, features, strict=True)
        ]
        first = jnp.any(available & (state.pulls < least))
        law = follow([a.law for a in advice], state.gate, spread(state.seen))
        law = jnp.where(first, greedy_law(-state.pulls, available), law)
        arm = draw(key, law)
        follows = jnp.stack([a.best[arm] > 0 for a in advice])
        again = (arm == state.runs.last) & (state.runs.length > 0)
        ticket = RememberingTicket(
            TrackerTicket(features, arm, effect, again, first, follows, time),
            RecurrentLinearTicket(seen, state.memory.hidden[0], memory.made, arm),
        )
        return Decision(arm, law, ticket), state._replace(
            memory=memory,
            runs=run_lengths.pull(state.runs, arm),
            pulls=count_pull(state.pulls, arm),
            squares=squares,
            time=time,
        )

    def learn(
        state: RememberingState, tickets: RememberingTicket, reward: Array
    ) -> RememberingState:
        ticket = tickets.tracker
        seen, above = see(state.seen, reward)
        judges, arm = ~ticket.first, ticket.arm
        known = list(zip(state.tracks, about, strict=True))
        at_once, one = jnp.int32(0), jnp.int32(1)  # no reward of these problems is late
        made = [
            tracks.forecast(*of, z, arm, at_once)
            for of, z in zip(known, ticket.features, strict=True)
        ]
        learnt = [
            tracks.learn(*of, arm, forecast, above - expected(ticket), spread(seen), judges, one)
            for of, forecast in zip(known, made, strict=True)
        ]
        never = state.pulls == 0
        scaled = (above - seen.mean) / jnp.sqrt(spread(seen))
        return state._replace(
            tracks=tuple(tracks.set_level(track, never, seen.mean) for track in learnt),
            memory=train(state.memory, tickets.memory, scaled, optimizer),
            gate=closer(state.gate, ticket.follows, above, judges),
            seen=seen,
            runs=weigh_run(state.runs, ticket, state.tracks[0], made[0], above, doubt),
        )

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
        network,
        optimizer.init(network),
        jnp.zeros((window, inputs)),
        jnp.zeros((window, hidden)),
        jnp.int32(0),
        jnp.zeros(num_arms + 1),
    )


def look(memory: Memory, context: Array) -> tuple[Memory, Array]:
    """The hidden state moves on; with the inputs that led to it."""
    now = jnp.concatenate([context, memory.last])
    inputs = jnp.concatenate([memory.inputs[1:], now[None]])
    h = gru(memory.network.layer, now, memory.hidden[-1])
    moved = jnp.concatenate([memory.hidden[1:], h[None]])
    made = jnp.minimum(memory.made + 1, len(inputs))
    return memory._replace(inputs=inputs, hidden=moved, made=made), inputs


def train(
    memory: Memory,
    ticket: RecurrentLinearTicket,
    reward: Array,
    optimizer: optax.GradientTransformation,
) -> Memory:
    """One step of the network towards the pulled arm's scaled reward."""

    def loss(network: Network) -> Array:
        h = unroll(network.layer, ticket.inputs, ticket.hidden, ticket.made)
        return (affine(network.output, h)[ticket.arm] - reward) ** 2

    updates, moments = optimizer.update(jax.grad(loss)(memory.network), memory.optimizer)
    pulled = jax.nn.one_hot(ticket.arm, memory.last.size - 1)
    return memory._replace(
        network=optax.apply_updates(memory.network, updates),
        optimizer=moments,
        last=jnp.append(pulled, reward),
    )
